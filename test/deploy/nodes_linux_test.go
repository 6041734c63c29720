//go:build nodes

package deploy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests need root and iproute2: each pod is a network namespace behind a bridge, and a
// directory. They are run by make nodes.

// enter makes this shell the first process of a pod: with its own processes, mounts and host name,
// and in its directory only what a container runtime adds to an empty image.
const enter = `set -e
hostname "$1"
mount -t proc proc "$2/proc"
if test -d "$2/dev/shm"; then mount -t tmpfs -o size=64m,mode=1777 tmpfs "$2/dev/shm"; fi
dir=$2 program=$3
shift 3
exec chroot --userspec=65534:65534 "$dir" "/$program" "$@"`

// pod is what stands in for a container of an image that has nothing but the programs.
type pod struct{ name, namespace, dir string }

func run(t *testing.T, words string) {
	t.Helper()
	fields := strings.Fields(words)
	out, err := exec.Command(fields[0], fields[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", words, out)
}

// makePods makes pods with names, and builds the image's programs.
func makePods(t *testing.T, secret string, names ...string) (pods []pod) {
	t.Helper()
	require.Zero(t, os.Geteuid(), "network namespaces need root")
	bridge := fmt.Sprintf("dep%d", os.Getpid()%100000)
	run(t, "ip link add "+bridge+" type bridge")
	t.Cleanup(func() { run(t, "ip link del "+bridge) })
	run(t, "ip link set "+bridge+" up")
	hosts := "127.0.0.1 localhost\n"
	for i, name := range names {
		p := pod{name, fmt.Sprintf("%s-%d", bridge, i), t.TempDir()}
		pods, hosts = append(pods, p), hosts+fmt.Sprintf("10.231.79.%d %s %s.train\n", i+1, name, name)
		run(t, "ip netns add "+p.namespace)
		t.Cleanup(func() { run(t, "ip netns del "+p.namespace) })
		outside := fmt.Sprintf("%sv%d", bridge, i)
		run(t, fmt.Sprintf("ip link add %s type veth peer name eth0 netns %s", outside, p.namespace))
		run(t, fmt.Sprintf("ip link set %s master %s up", outside, bridge))
		run(t, fmt.Sprintf("ip -n %s addr add 10.231.79.%d/24 dev eth0", p.namespace, i+1))
		run(t, fmt.Sprintf("ip -n %s link set eth0 up", p.namespace))
		run(t, fmt.Sprintf("ip -n %s link set lo up", p.namespace))
	}

	for i, p := range pods {
		for _, dir := range []string{"dev", "proc", "etc", "secret", "data"} {
			require.NoError(t, os.MkdirAll(filepath.Join(p.dir, dir), 0o755))
		}
		for file, text := range map[string]string{"etc/hosts": hosts, "secret/text": secret} {
			require.NoError(t, os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o444))
		}
		require.NoError(t, os.Chmod(p.dir, 0o755))
		run(t, "mknod -m 666 "+filepath.Join(p.dir, "dev/null")+" c 1 3")
		require.NoError(t, os.Chmod(filepath.Join(p.dir, "data"), 0o777))
		for program, source := range map[string]string{"train": "examples/loop/ranks", "goccl": "examples/deploy/goccl"} {
			if file := filepath.Join(p.dir, program); i > 0 {
				require.NoError(t, os.Link(filepath.Join(pods[0].dir, program), file))
			} else {
				c := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", file, root+source)
				c.Env = append(os.Environ(), "CGO_ENABLED=0")
				out, err := c.CombinedOutput()
				require.NoError(t, err, string(out))
			}
		}
	}
	return pods
}

// command is a program of the image in a pod.
func (p pod) command(ctx context.Context, v map[string]string, program string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	c := exec.CommandContext(ctx, "ip", slices.Concat([]string{"netns", "exec", p.namespace, "unshare", "--uts", "--ipc", "--pid", "--fork", "--mount", "--kill-child",
		"sh", "-c", enter, "sh", p.name, p.dir, program}, args)...)
	out := new(bytes.Buffer)
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range v {
		c.Env = append(c.Env, name+"="+value)
	}
	c.Stdout, c.Stderr, c.WaitDelay = out, out, time.Second
	return c, out
}

const secret = "known to all pods of it"

// runAll runs programs at the same time, which all have to succeed, and returns what each wrote.
func runAll(t *testing.T, start func(ctx context.Context, i int) (*exec.Cmd, *bytes.Buffer), count int) (texts []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	errs := make([]error, count)
	outs := make([]*bytes.Buffer, count)
	var running sync.WaitGroup
	for i := range count {
		c, out := start(ctx, i)
		outs[i] = out
		running.Go(func() { errs[i] = c.Run() })
	}
	running.Wait()
	for i, out := range outs {
		require.NoError(t, errs[i], out)
		texts = append(texts, out.String())
	}
	return texts
}

// TestNodesJob runs the training of examples/deploy/job.yaml, with the variables and arguments that
// its pods have. They have no shared memory.
func TestNodesJob(t *testing.T) {
	_, job := readManifests(t)
	var names []string
	for i := range job.Spec.Completions {
		names = append(names, fmt.Sprintf("%s-%d", job.Metadata.Name, i))
	}
	pods := makePods(t, secret, names...)
	texts := runAll(t, func(ctx context.Context, i int) (*exec.Cmd, *bytes.Buffer) {
		v := job.variables(i)
		v["GOCCL_LOG"] = "info"
		return pods[i].command(ctx, v, "train", append(job.Spec.Template.Spec.Containers[0].Args, "-epochs", "1")...)
	}, len(pods))
	for i, text := range texts {
		require.Contains(t, text, fmt.Sprintf("rank=%d ranks=%d transport=tcp", i, len(pods)))
	}
	require.Contains(t, texts[0], "epoch 1: loss")
	require.FileExists(t, filepath.Join(pods[0].dir, "data/digits.safetensors"))
}

// TestNodesOfSeveralRanks runs goccl in pods that have two ranks each.
func TestNodesOfSeveralRanks(t *testing.T) {
	pods := makePods(t, secret, "train-0", "train-1")
	for _, p := range pods {
		require.NoError(t, os.Mkdir(filepath.Join(p.dir, "dev/shm"), 0o755))
	}
	texts := runAll(t, func(ctx context.Context, i int) (*exec.Cmd, *bytes.Buffer) {
		return pods[i].command(ctx, map[string]string{"GOCCL_SECRET_FILE": "/secret/text", "GOCCL_LOG": "info"}, "goccl", "run", "--nnodes", "2", "--node-rank", fmt.Sprint(i),
			"--rdzv-endpoint", "train-0.train:29500", "-n", "2", "/train", "-epochs", "1", "-checkpoint", "/data/digits.safetensors")
	}, len(pods))
	require.Contains(t, texts[0], "[0] epoch 1: loss")
	require.Contains(t, texts[1], "rank=3 ranks=4 transport=tcp")
}
