package tool

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every node shows what all have found, and they end with one status.
func TestDoctorOfNodes(t *testing.T) {
	t.Setenv("GOCCL_SECRET", "a secret of some nodes")
	for _, c := range []struct {
		variable, command string
		status            int
		want              string
	}{
		{"A=b", "doctor", 0, `(?s)\Anodes\n  ok       node 0 +host \S+, MTU \d+, goccl .*; it reaches all others\n  ok       node 1 .*\n\nno problem, no note\n\z`},
		{"GOCCL_ALGORITHM=ring", "doctor", 1, `\n  problem  node 1 +host \S+: defaults.algorithm is ring \(GOCCL_ALGORITHM\), but on node 0 \w+ \(.*\)\n +-> give all nodes the same ccl.yaml and the same GOCCL_ variables\n`},
		{"GOCCL_CONFIG=/none.yaml", "doctor", 1, `\n  problem  node 1 +host \S+: .*/none.yaml.*\n +-> correct it`},
		{"A=b", "run -n 1 true", 1, `nodes\n  problem  node 0 +node 1, host \S+, runs goccl run, and node 0 goccl doctor\n +-> give the same command on all nodes, `},
	} {
		words := strings.Fields(c.command)
		flags := []string{"--nnodes", "2", "--rdzv-endpoint", freeEndpoint(t)}
		first, stderr0 := program(t, append(append([]string{"doctor"}, flags...), "--node-rank=0")...)
		second, stderr1 := program(t, append(append(append(words[:1:1], flags...), "--node-rank=1"), words[1:]...)...)
		var out strings.Builder
		first.Stdout, second.Env = &out, append(second.Env, c.variable)
		require.NoError(t, first.Start())
		other, _ := second.Output() // the status is below
		require.Equal(t, c.status, ended(t, first.Wait()), stderr0)
		require.Equal(t, c.status, second.ProcessState.ExitCode(), stderr1)
		require.Regexp(t, c.want, out.String())
		if words[0] == "doctor" {
			require.Equal(t, out.String(), string(other))
		}
	}
	require.Contains(t, failed(t, 2, "doctor", "--nodes", "2"), "--rdzv-endpoint is missing: give all nodes a host of node 0 and a port, as in goccl doctor --nnodes 2 ")
}
