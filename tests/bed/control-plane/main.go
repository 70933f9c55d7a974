// One binary that is what a control plane consists of besides etcd and the API server: the
// controller manager, the scheduler, the kubelet with a container runtime that runs
// nothing (kubemark is both in one), and kwok, which plays nodes and kubelets.
// `control-plane TOOL ARGUMENTS...` runs one of them, and so does a link to it
// that has the tool's name.
//
// What every test starts is in binaries of its own, beside this one: this one takes a tenth of a
// second of processor time before it does anything.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	cri "k8s.io/cri-client/pkg/fake"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	kubemark "k8s.io/kubernetes/cmd/kubemark/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwokcmd "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"

	"github.com/spf13/pflag"
)

var tools = map[string]func(){
	"kube-controller-manager": func() { os.Exit(cli.Run(controllers.NewControllerManagerCommand())) },
	"kube-scheduler":          func() { os.Exit(cli.Run(scheduler.NewSchedulerCommand())) },
	// Kubernetes' own kubelet, with a container runtime that only says that it runs pods.
	"kubemark": func() { os.Exit(cli.Run(kubemark.NewHollowNodeCommand())) },
	// The kubelet as nodes run it, and what it asks to run containers.
	"kubelet":           func() { os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background()))) },
	"container-runtime": containerRuntime,
	"kwok":              kwok,
}

func main() {
	tool := tools[filepath.Base(os.Args[0])]
	if tool == nil && len(os.Args) > 1 {
		// The tools read os.Args themselves.
		os.Args = os.Args[1:]
		tool = tools[os.Args[0]]
	}
	if tool == nil {
		var names []string
		for name := range tools {
			names = append(names, name)
		}
		slices.Sort(names)
		fail(fmt.Errorf("the first argument, or the name of the link, is one of %v", names))
	}
	tool()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "control-plane:", err)
	os.Exit(1)
}

// `container-runtime SOCKET`: it says that it runs pods, and runs nothing. It is what
// Kubernetes tests its kubelet with.
func containerRuntime() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("container-runtime takes a socket, and nothing else"))
	}
	if err := cri.NewFakeRemoteRuntime().Start("unix://" + os.Args[1]); err != nil {
		fail(err)
	}
	select {}
}

// As in kwok's own main, without the flags for all that Kubernetes' packages add.
func kwok() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		fail(err)
	}
	command := kwokcmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		fail(err)
	}
}
