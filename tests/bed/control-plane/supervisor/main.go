// `supervisor supervise PARENT` runs a control plane for a test, and `supervisor etcd DIR` is its
// store. Both are started for each test, so they are in a binary that is quick to start.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("the first argument is supervise or etcd"))
	}
	// Each reads its own arguments as if it were a program.
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "supervise":
		supervise()
	case "etcd":
		etcd()
	default:
		fail(fmt.Errorf("the first argument is supervise or etcd, not %s", os.Args[0]))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "control-plane:", err)
	os.Exit(1)
}
