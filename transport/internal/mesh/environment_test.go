package mesh

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/require"
)

type variables map[string]string

func (v variables) with(others variables) variables {
	v = maps.Clone(v)
	maps.Copy(v, others)
	return v
}

// fromEnvironment returns the Config that the variables of a rank give, as package dist asks for it.
func fromEnvironment(t *testing.T, v variables) (*Config, error) {
	t.Helper()
	get := func(name string) string { return v[name] }
	l, err := launchenv.Detect(get)
	require.NoError(t, err)
	require.NotNil(t, l)
	return FromEnvironment(get, &transport.Job{Size: l.Size, Launched: true, Rank: l.Rank, Origin: l.String(), Apart: l.Apart, Key: l.Key, Secret: l.Secret, Attempt: 1})
}

var torchrun = variables{
	"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500",
	"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_USE_AGENT_STORE": "True", "GOCCL_SECRET": secret,
}

func TestFromEnvironment(t *testing.T) {
	at := fixed{"10.0.0.1", 29500}
	byHand := variables{"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(file, []byte("  "+secret+"\n"), 0o600))

	for name, c := range map[string]struct {
		v    variables
		want Config
	}{
		"torchrun's agent": {torchrun, Config{Rank: 3, Size: 4, Job: "none/2/1", Secret: secret, Node: 1, LocalRank: 1, LocalSize: 2,
			Rendezvous: &agentStore{fixed: at, key: "goccl/none/2/1"}}},
		"of a later torch": {torchrun.with(variables{"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}), Config{Rank: 3, Size: 4, Job: "none/2/1", Secret: secret, Node: 1, LocalRank: 1, LocalSize: 2,
			Rendezvous: &agentStore{fixed: at, key: "goccl/none/2/1", isNew: true}}},
		"a port of rank 0": {torchrun.with(variables{"TORCHELASTIC_USE_AGENT_STORE": "False"}), Config{Rank: 3, Size: 4, Job: "none/2/1", Secret: secret, Node: 1, LocalRank: 1, LocalSize: 2, Rendezvous: at}},
		"by hand":          {byHand.with(variables{"GOCCL_SECRET_FILE": file}), Config{Rank: 1, Size: 2, Job: "//1", Node: -1, Secret: secret, Rendezvous: at}},
		"open":             {byHand.with(variables{"GOCCL_SECRET": "none"}), Config{Rank: 1, Size: 2, Job: "//1", Node: -1, Rendezvous: at}},
		"an IPv6 address":  {torchrun.with(variables{"MASTER_ADDR": "[2001:db8::1]", "TORCHELASTIC_USE_AGENT_STORE": ""}), Config{Rank: 3, Size: 4, Job: "none/2/1", Secret: secret, Node: 1, LocalRank: 1, LocalSize: 2, Rendezvous: fixed{"2001:db8::1", 29500}}},
		"loopback":         {byHand.with(variables{"MASTER_ADDR": "::1", "LOCAL_WORLD_SIZE": "1"}), Config{Rank: 1, Size: 2, Job: "//1", Node: -1, LocalSize: 1, IsLoopback: true, Rendezvous: fixed{"::1", 29500}}},
		"one node":         {byHand.with(variables{"MASTER_ADDR": "10.0.0.1", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_RESTART_COUNT": "0"}), Config{Rank: 1, Size: 2, Job: "x/0/1", LocalSize: 2, IsLoopback: true, Rendezvous: fixed{loopback, 29500}}},
		"an interface":     {torchrun.with(variables{"GLOO_SOCKET_IFNAME": "eth1,eth0", "TORCHELASTIC_USE_AGENT_STORE": ""}), Config{Rank: 3, Size: 4, Job: "none/2/1", Secret: secret, Node: 1, LocalRank: 1, LocalSize: 2, Interface: "eth1", Rendezvous: at}},
		"ours first":       {torchrun.with(variables{"GLOO_SOCKET_IFNAME": "eth1", "GOCCL_INTERFACE": "10.0.0.7", "TORCHELASTIC_USE_AGENT_STORE": ""}), Config{Rank: 3, Size: 4, Job: "none/2/1", Secret: secret, Node: 1, LocalRank: 1, LocalSize: 2, Interface: "10.0.0.7", Rendezvous: at}},
		"nodes of goccl run": {variables{"GOCCL_SHM_NAME": "/goccl-1", "GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "2", "GOCCL_NODES": "2", "GROUP_RANK": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
			"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "GOCCL_SECRET": secret, launchenv.ResultVariable: dir + "/result-1"}, Config{Rank: 1, Size: 2, Job: "/goccl-1//1", Secret: secret, Node: 1, LocalSize: 1, Rendezvous: at}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fromEnvironment(t, c.v)
			require.NoError(t, err)
			require.Equal(t, &c.want, got)
		})
	}
}

func TestFromEnvironmentFails(t *testing.T) {
	for text, v := range map[string]variables{
		"without a secret, whoever reaches a rank could join; on one node, make one, by\n  (umask 077; head -c 24 /dev/urandom | base64 >secret)\n": torchrun.with(variables{"GOCCL_SECRET": ""}),
		"by LOCAL_WORLD_SIZE=2 only 2 of them are on this node: without a secret":                                                                   torchrun.with(variables{"GOCCL_SECRET": ""}),
		"set MASTER_ADDR and MASTER_PORT": {"GOCCL_SHM_NAME": "/x", "GOCCL_SHM_RANK": "0", "GOCCL_SHM_SIZE": "2"},
		"MASTER_PORT=70000":               torchrun.with(variables{"MASTER_PORT": "70000"}),
	} {
		_, err := fromEnvironment(t, v)
		require.ErrorContains(t, err, text)
	}
}

// TestConnectByLauncherFile lets ranks find each other in the directory of goccl run.
func TestConnectByLauncherFile(t *testing.T) {
	dir := t.TempDir()
	all := make([]*Config, 3)
	for rank := range all {
		c, err := fromEnvironment(t, variables{"GOCCL_SHM_NAME": "/x", "GOCCL_SHM_RANK": string(rune('0' + rank)), "GOCCL_SHM_SIZE": "3",
			"GOCCL_SECRET": secret, launchenv.ResultVariable: filepath.Join(dir, "result-1")})
		require.NoError(t, err)
		require.True(t, c.IsLoopback)
		all[rank] = c
	}
	exchange(t, connectAll(bounded(t), all, nil))
}

func TestInterface(t *testing.T) {
	ip, err := interfaceAddress("127.0.0.1")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", ip.String())
	_, err = interfaceAddress("eth17")
	require.ErrorContains(t, err, `the interface "eth17" of GOCCL_INTERFACE or GLOO_SOCKET_IFNAME: `)

	all := configs(t, 2)
	for _, c := range all {
		c.Interface, c.IsLoopback = "127.0.0.1", false
	}
	exchange(t, connectAll(bounded(t), all, nil))
}
