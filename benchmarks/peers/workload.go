package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
	"github.com/goccl/goccl/internal/workload"
)

const gocclSteps = "github.com/goccl/goccl/benchmarks/peers/programs/goccl_ddp"

// ourSteps is the reference of steps of training: processes with processes, and gradients are the
// program's own, as they are by default on both sides.
var ourSteps = table.Contestant{Library: "goccl", Entry: "copies"}

// setUpWorkloads sets up the comparison of steps of data parallel training: package ddp's with
// torch's.
func setUpWorkloads(ctx context.Context, o options, w workplace, stderr io.Writer) (comparison, error) {
	torch := library{"gloo", "torch", "python3-torch", setUpTorchSteps}
	peers, version, err := setUpPeers(ctx, o, w, stderr, []library{torch}, turnsOf)
	if err != nil {
		return comparison{}, err
	}
	entries, err := setUpGocclSteps(ctx, w)
	if err != nil {
		return comparison{}, err
	}
	return comparison{
		turns: append(turnsOf(library{name: ourSteps.Library}, entries), peers...),
		head: fmt.Sprintf("goccl, %s; %d passes\ndata parallel training, float32, processes: what communication adds to a step, "+
			"median of the slowest rank in microseconds, and of torch how many times that of goccl's copies", version, o.passes),
		file: "peers-workloads.csv",
		show: func(w io.Writer, rows []table.Row) { writeTables(w, rows, ourSteps) },
	}, nil
}

// setUpGocclSteps builds goccl's program and its launcher.
func setUpGocclSteps(ctx context.Context, w workplace) (entries []entry, err error) {
	if err := w.build(ctx, gocclSteps, gocclLauncher); err != nil {
		return nil, err
	}
	for _, form := range []string{"views", "copies"} {
		entries = append(entries, entry{form, w.onProcesses("goccl_ddp", form)})
	}
	return entries, nil
}

// setUpTorchSteps finds torch. Gradients are views of its buckets if it is asked to make them so.
func setUpTorchSteps(ctx context.Context, w workplace) (version string, entries []entry, err error) {
	python, version, err := findTorch(ctx)
	if err != nil {
		return "", nil, err
	}
	script, err := w.write("gloo_ddp.py")
	for _, form := range []string{"views", "copies"} {
		entries = append(entries, entry{"DDP " + form, w.launch(func(ranks int) []string {
			return []string{python, script, strconv.Itoa(ranks), form}
		}, "GLOO_SOCKET_IFNAME=lo")}) // the name of the machine may have no address
	}
	return version, entries, err
}

// measureWorkloads runs the entry's program once for each workload; it prints a row.
func (e entry) measureWorkloads(ctx context.Context, library string, ranks int, o options) (rows []table.Row, err error) {
	for _, name := range o.workloads {
		w, err := workload.Named(name)
		if err != nil {
			return nil, err
		}
		args := []string{library, e.name, o.budgetMS(), strconv.Itoa(maxCalls), name}
		for _, p := range w.Parameters() {
			args = append(args, strconv.Itoa(p.Elements()))
		}

		of, err := e.run(ctx, library, ranks, o, args, []int{4 * w.Elements()})
		if err != nil {
			return nil, err
		}
		rows = append(rows, of...)
	}
	return rows, nil
}
