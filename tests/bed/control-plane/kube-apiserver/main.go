// The API server by itself, which every test starts, see the binary with all else.
package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// The memory that is used before garbage is collected.
const firstHeap = 768 << 20

func main() {
	collectLate()
	// As the other binary is called: the first argument is the tool.
	os.Args = os.Args[1:]
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}

// What an API server makes as it starts stays, so collecting then is a tenth of what the start
// takes. From the first collection on it goes on as GOGC says, whatever it needs.
func collectLate() {
	percent := debug.SetGCPercent(-1)
	debug.SetMemoryLimit(firstHeap)
	type marker struct{ pointer *int }
	runtime.SetFinalizer(&marker{new(int)}, func(*marker) {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(math.MaxInt64)
	})
}
