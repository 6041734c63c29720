package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setUpGloo looks for a python3 that has torch, in all directories of PATH: the first
// is often one of a version manager, and Debian's torch belongs to Debian's python.
func setUpGloo(ctx context.Context, w workplace) (string, []entry, error) {
	const question = "import torch, torch.distributed as d; assert d.is_available(); print(torch.__version__)"
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		python, err := exec.LookPath(filepath.Join(dir, "python3"))
		if err != nil {
			continue
		}
		version, err := child{args: []string{python, "-c", question}}.output(ctx, time.Minute, grace)
		if err != nil {
			continue // it has no torch
		}
		script, err := w.place("gloo_allreduce.py")
		if err != nil {
			return "", nil, err
		}
		launch := func(env ...string) func(int) job {
			return func(ranks int) job {
				return job{{[]string{python, script, strconv.Itoa(ranks)}, slices.Concat(env, []string{"TMPDIR=" + w.dir})}}
			}
		}
		return strings.TrimSpace(version), []entry{
			{"default", launch()},
			// Its time goes into the sockets of the loopback interface, and is at the
			// mercy of the scheduler. GLOO_SOCKET_IFNAME=lo made no difference, nor
			// did more threads a rank.
			{"tuned", launch(heapKept...)},
		}, nil
	}
	return "", nil, errors.New("no python3 in PATH has torch")
}
