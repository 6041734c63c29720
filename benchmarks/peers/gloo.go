package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// findTorch looks for a python3 with torch in all directories of PATH: the first python3
// often belongs to a version manager, and Debian's torch works with Debian's python.
func findTorch(ctx context.Context) (python, version string, err error) {
	const question = "import torch, torch.distributed as d; assert d.is_available(); print(torch.__version__)"
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		python, err := exec.LookPath(filepath.Join(dir, "python3"))
		if err != nil {
			continue
		}
		version, err := child{args: []string{python, "-c", question}}.output(ctx, time.Minute, graceTime)
		if err != nil {
			continue // without torch
		}
		return python, strings.TrimSpace(version), nil
	}
	return "", "", errors.New("no python3 in PATH has torch")
}

func setUpGloo(ctx context.Context, w workplace) (string, []entry, error) {
	python, version, err := findTorch(ctx)
	if err != nil {
		return "", nil, err
	}
	script, err := w.write("gloo_allreduce.py")
	if err != nil {
		return "", nil, err
	}
	command := func(ranks int) []string { return []string{python, script, strconv.Itoa(ranks)} }
	return version, []entry{
		{"default", w.launch(command)},
		// It spends its time in sockets of the loopback interface and depends on the
		// scheduler. Neither GLOO_SOCKET_IFNAME=lo nor more threads per rank made a
		// difference.
		{"tuned", w.launch(command, heapKept...)},
	}, nil
}
