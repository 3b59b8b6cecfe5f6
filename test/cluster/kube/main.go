// One binary that is each Kubernetes component, by the name it is called with: the test cluster is built from modules alone.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

// Only the command asked for is made: each constructor fills global flag sets.
var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"kwok":                    newKwok,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	if run, ok := map[string]func(){"dns": dns, "stages": stages}[name]; ok {
		run()
		return
	}
	build, ok := commands[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "call me by the name of a Kubernetes component, not", name)
		os.Exit(2)
	}
	cmd := build()
	if name == "kubectl" {
		if err := cli.RunNoErrOutput(cmd); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(cli.Run(cmd))
}

func newKwok() *cobra.Command {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	ctx, _ := kwoklog.InitFlags(context.Background(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cmd := kwok.NewCommand(ctx)
	cmd.PersistentFlags().AddFlagSet(flags)
	cmd.Version = "" // cobra would add a bool --version beside the one that component-base registers globally
	cmd.SetContext(ctx)
	return cmd
}
