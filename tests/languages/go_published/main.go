// The tasks of the language tests on the published Go SDK.
package main

import (
	"errors"
	"log"
	"log/slog"

	v1 "github.com/apache/airflow/go-sdk/bundle/bundlev1"
	"github.com/apache/airflow/go-sdk/bundle/bundlev1/bundlev1server"
	"github.com/apache/airflow/go-sdk/sdk"
)

type tasks struct{}

func (tasks) GetBundleVersion() v1.BundleInfo {
	version := "1"
	return v1.BundleInfo{Name: "language", Version: &version}
}

func (tasks) RegisterDags(dags v1.Registry) error {
	dag := dags.AddDag("language_go_published")
	dag.AddTaskWithName("double", doubling)
	dag.AddTaskWithName("flaky", flaky)
	return nil
}

func doubling(ctx sdk.TIRunContext, client sdk.Client, log *slog.Logger) (any, error) {
	log.Info("doubling in go_published")
	ti := ctx.TaskInstance()
	numbers, err := client.GetXCom(ctx, ti.DagID, ti.RunID, "numbers", nil, "return_value", nil)
	if err != nil {
		return nil, err
	}
	doubled := []any{}
	for _, number := range numbers.([]any) {
		switch n := number.(type) {
		case int64:
			doubled = append(doubled, 2*n)
		case float64:
			doubled = append(doubled, 2*int64(n))
		default:
			return nil, errors.New("a number of another kind")
		}
	}
	return doubled, nil
}

func flaky(ctx sdk.TIRunContext) (any, error) {
	if attempt := ctx.TaskInstance().TryNumber; attempt > 1 {
		return attempt, nil
	}
	return nil, errors.New("the first try never works")
}

func main() {
	if err := bundlev1server.Serve(tasks{}); err != nil {
		log.Fatal(err)
	}
}
