package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// child describes a process that this program starts.
type child struct {
	args []string // the program and its arguments
	env  []string // NAME=value, added to this process's environment
}

// graceTime is how long a launcher that was asked to end may take to clean up.
const graceTime = 5 * time.Second

// childMark is the environment variable that marks all descendants of a child. Their process
// group is not enough to find them, because ranks of MPI leave their launcher's.
const childMark = "PEERS_CHILD"

// output runs the child and returns its output. It asks the child to end when limit has passed or
// ctx ends, and kills it if it takes longer than grace. When output returns, all descendants of
// the child are dead.
func (c child) output(ctx context.Context, limit, grace time.Duration) (string, error) {
	mark := childMark + "=" + rand.Text()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("killed: it had not ended after %v", limit))
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Env = append(append(os.Environ(), c.env...), mark)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = grace
	ownGroup(cmd)

	cmd.Cancel = func() error { return askToEnd(cmd.Process) }
	err := cmd.Run()
	if cmd.Process != nil {
		killAll(cmd.Process, mark)
	}

	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && stderr.Len() > 0:
		err = fmt.Errorf("%w: %s", err, lastLines(stderr.String(), 8))
	}
	return stdout.String(), err
}

// String returns the command line.
func (c child) String() string {
	words := c.args
	if len(c.env) > 0 {
		words = append(append([]string{"env"}, c.env...), words...)
	}
	return strings.Join(words, " ")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
