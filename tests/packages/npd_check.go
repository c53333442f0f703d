// Checks a configuration as Node Problem Detector does, runs its plug-in once, and prints what is said
// of the node. Built in a checkout of Node Problem Detector.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/node-problem-detector/pkg/custompluginmonitor/plugin"
	"k8s.io/node-problem-detector/pkg/custompluginmonitor/types"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var config types.CustomPluginConfig
	must(json.Unmarshal(text, &config))
	must(config.ApplyConfiguration())
	must(config.Validate())
	run := plugin.NewPlugin(config)
	go run.Run()
	result := <-run.GetResultChan()
	fmt.Printf("%d %s: %s\n", result.ExitStatus, result.Rule.Reason, result.Message)
}
