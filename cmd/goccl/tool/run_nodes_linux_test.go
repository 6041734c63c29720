package tool

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodesUsage(t *testing.T) {
	t.Setenv("GOCCL_SECRET", "")
	for line, want := range map[string]string{
		"--nnodes 0 -n 2 true":                                            "--nnodes 0: want 1 or more, up to 65536",
		"--nnodes 2 --node-rank 2 -n 2 true":                              "--node-rank 2: want the number of this node among --nnodes 2, from 0 to 1",
		"--node-rank 1 -n 2 true":                                         "--node-rank 1: want the number of this node among --nnodes 1, from 0 to 0",
		"--nnodes 2 -n 2 true":                                            "--rdzv-endpoint is missing: give all nodes a host of node 0 and a port, as in goccl run --nnodes 2 ",
		"--nnodes 2 --rdzv-endpoint node-a -n 2 true":                     "--rdzv-endpoint node-a: want HOST:PORT, as in goccl run --nnodes 2 ",
		"--nnodes 2 --rdzv-endpoint node-a:65536 -n 2 true":               "--rdzv-endpoint node-a:65536: want HOST:PORT, as in goccl run --nnodes 2 ",
		"--nnodes 2 --rdzv-endpoint node-a:https -n 2 true":               "--rdzv-endpoint node-a:https: want HOST:PORT, as in goccl run --nnodes 2 ",
		"--nnodes 2 --rdzv-endpoint :29500 -n 2 true":                     "--rdzv-endpoint :29500: want HOST:PORT, as in goccl run --nnodes 2 ",
		"--nnodes 2 --rdzv-endpoint [::]:29500 -n 2 true":                 "--rdzv-endpoint [::]:29500: want HOST:PORT, as in goccl run --nnodes 2 ",
		"--nnodes 2 --rdzv-conf timeout=5 -n 2 true":                      `want join_timeout=SECONDS, but got "timeout=5"`,
		"--nnodes 2 --rdzv-conf join_timeout=0 -n 2 true":                 `want join_timeout=SECONDS, but got "join_timeout=0"`,
		"--nnodes 9000000000 --rdzv-endpoint node-a:29500 -n 2 true":      "--nnodes 9000000000: want 1 or more, up to 65536",
		"--nnodes 2 --node_rank=1 --rdzv_endpoint node-a:29500 -n 2 true": "--nnodes: without a secret, whoever reaches a node could join; on one node, make one, by\n                (umask 077; head -c 24 ",
	} {
		require.Contains(t, failed(t, 2, append([]string{"run"}, strings.Fields(line)...)...), want, line)
	}
	t.Setenv("GOCCL_SECRET", "too short")
	require.Contains(t, failed(t, 2, "run", "--nnodes", "2", "--rdzv-endpoint", "node-a:29500", "-n", "1", "true"), "the secret of GOCCL_SECRET has 9 bytes, and could be found by trying")
}

// freeEndpoint returns an address of loopback at which nothing listens, and from which the system
// lets nobody dial.
func freeEndpoint(t *testing.T) string {
	t.Helper()
	for range 1000 {
		endpoint := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", endpoint); err == nil {
			require.NoError(t, l.Close())
			return endpoint
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Two nodes are one job: node 0 reports all ranks, and both end with the status of the one that failed.
func TestTwoNodes(t *testing.T) {
	endpoint := freeEndpoint(t)
	report := filepath.Join(t.TempDir(), "report.json")
	t.Setenv("GOCCL_SECRET", "none")
	told := filepath.Join(t.TempDir(), "told")
	script := `echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE"
	test $RANK != 1 || touch ` + told + `
	test $RANK != 2 || { until test -e ` + told + `; do sleep 0.01; done; echo "out of luck" >&2; exit 5; }
	sleep 60`
	args := func(node string) []string {
		return []string{"run", "--nnodes", "2", "--node-rank", node, "--rdzv-endpoint", endpoint, "--report", report, "-n", "2", "/bin/sh", "-c", script}
	}
	second, stderr1 := program(t, args("1")...)
	require.NoError(t, second.Start())
	first, stderr0 := program(t, args("0")...)
	stdout, _ := first.Output()
	require.Equal(t, 5, first.ProcessState.ExitCode(), "%s", stderr0)
	require.Equal(t, 5, ended(t, second.Wait()), "%s", stderr1)

	warning := "goccl: warning: GOCCL_SECRET=none: whoever reaches " + endpoint + " may join the job"
	require.Contains(t, stderr0.String(), warning)
	require.Contains(t, string(stdout), "[1] rank 1 of 4, 1 of 2")
	require.Regexp(t, `rank 2 \(node 1, host .*, pid \d+\) was the first to fail, after .*: exit status 5\n +the last that it wrote to standard error:\n +out of luck`, stderr0.String())
	require.Regexp(t, `rank 2 \(node 1, host .*, pid \d+\) was the first to fail, after .*: exit status 5 \(node 0, host .*, has the whole error\)`, stderr1.String())

	var r runReport
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, []int{2}, r.Blamed)
	require.Len(t, r.Ranks, 4)
	for i, rank := range r.Ranks {
		require.Equal(t, i/2, *rank.Node)
		require.Positive(t, rank.PID)
		require.Positive(t, rank.Seconds)
	}
}

// A node that cannot start its program tells the others, which would wait for it.
func TestNodeWithoutProgram(t *testing.T) {
	t.Setenv("GOCCL_SECRET", "the secret of this test")
	for bad := range 2 {
		endpoint := freeEndpoint(t)
		args := func(node int) []string {
			name := "/bin/true"
			if node == bad {
				name = "/no/such/program"
			}
			return []string{"run", "--nnodes", "2", "--node-rank", fmt.Sprint(node), "--rdzv-endpoint", endpoint, "-n", "1", name}
		}
		second, stderr1 := program(t, args(1)...)
		require.NoError(t, second.Start())
		first, stderr0 := program(t, args(0)...)
		require.Equal(t, 127, ended(t, first.Run()), "%s", stderr0)
		require.Equal(t, 127, ended(t, second.Wait()), "%s", stderr1)
		for node, text := range []string{stderr0.String(), stderr1.String()} {
			if node == bad {
				require.Contains(t, text, "goccl: warning: /no/such/program: there is no such program: the other nodes are told\n")
				require.Contains(t, text, "goccl: error: /no/such/program: there is no such program\n")
			} else {
				require.Regexp(t, fmt.Sprintf("goccl: error: node %d, host .*: /no/such/program: there is no such program\n", bad), text)
			}
		}
	}
}

// How long a launcher waits for the others can be set.
func TestNodeThatIsAlone(t *testing.T) {
	t.Setenv("GOCCL_SECRET", "the secret of this test")
	for node, waits := range []string{"waiting for node 1 to connect to port ", "waiting for node 0 at "} {
		text := failed(t, 1, "run", "--nnodes", "2", "--node-rank", fmt.Sprint(node), "--rdzv-endpoint", freeEndpoint(t), "--rdzv-conf", "join_timeout=1", "-n", "1", "true")
		require.Contains(t, text, "1s have passed (--rdzv-conf join_timeout=SECONDS sets how long launchers wait): "+waits)
	}
}
