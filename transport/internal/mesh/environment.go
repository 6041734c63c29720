package mesh

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
)

// The transport's name, in errors.
const transportName = "tcp"

// FromEnvironment returns the Config of a rank of a launched job by the variables of its launcher:
// torch's, which goccl run --nnodes sets as well, or, if all ranks are on this node, goccl run's
// directory. It asks nobody and answers alike on all ranks. The errors are
// *transport.MissingConfigurationError and *transport.NotAvailableError.
//
// The caller sets Build.
func FromEnvironment(getenv func(string) string, j *transport.Job) (*Config, error) {
	c := &Config{
		Rank: j.Rank, Size: j.Size, Secret: j.Secret, IsLoopback: j.Apart == "", Node: -1,
		Job:       fmt.Sprintf("%s/%s/%d", cmp.Or(getenv("GOCCL_SHM_NAME"), getenv("TORCHELASTIC_RUN_ID")), getenv("TORCHELASTIC_RESTART_COUNT"), j.Attempt),
		LocalRank: number(getenv("LOCAL_RANK")), LocalSize: number(getenv("LOCAL_WORLD_SIZE")),
		Certificates: getenv(launchenv.CertificatesVariable),
	}
	gloo, _, _ := strings.Cut(getenv("GLOO_SOCKET_IFNAME"), ",")
	c.Interface = cmp.Or(getenv("GOCCL_INTERFACE"), gloo)
	if node := getenv("GROUP_RANK"); node != "" || c.IsLoopback {
		c.Node = number(node)
	}

	host, port := strings.Trim(getenv("MASTER_ADDR"), "[]"), number(getenv("MASTER_PORT"))

	where := j.Origin
	if j.Apart != "" {
		where += ", and " + j.Apart
	}

	switch {
	case c.IsLoopback && getenv(launchenv.ResultVariable) != "":
		c.Rendezvous = launcherFile{getenv, j.Attempt}
		return c, nil
	case host == "" || port == 0:
		return nil, &transport.MissingConfigurationError{Missing: []string{"MASTER_ADDR", "MASTER_PORT"}, Message: fmt.Sprintf(
			"transport %q: %s; set MASTER_ADDR and MASTER_PORT, to an address of rank 0's node and a port that is free there, on all ranks, as torchrun does, "+
				"or start them with goccl run; or import github.com/goccl/goccl/transport/mpi and start them with mpirun, mpiexec or srun", transportName, where)}
	case port < 0 || port > 65535:
		return nil, &transport.NotAvailableError{Transport: transportName, Reason: fmt.Sprintf("MASTER_PORT=%s: ports are numbers from 1 to 65535", getenv("MASTER_PORT"))}
	// Which hosts can reach the ranks?
	case launchenv.IsLoopback(host):
		c.IsLoopback = true
	case c.IsLoopback:
		host = loopback // the node's own name may stand for another address
	case j.Secret == "" && !launchenv.IsOpen(getenv):
		return nil, &transport.MissingConfigurationError{Missing: []string{launchenv.SecretFileVariable, launchenv.SecretVariable}, Message: fmt.Sprintf(
			"transport %q: %s: without a secret, whoever reaches a rank could join; %s", transportName, where, launchenv.SecretRemedy)}
	}

	at := fixed{host, port}
	c.Rendezvous = at
	if getenv("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		const newer = "TORCH_NCCL_ASYNC_ERROR_HANDLING" // set by torchrun from version 2.2 on
		c.Rendezvous = &agentStore{fixed: at, key: "goccl/" + c.Job, isNew: getenv(newer) != ""}
	}
	return c, nil
}

// number returns the value of a variable, 0 if it is not set, -1 if it is no number.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil && text != "" {
		return -1
	}
	return n
}

// interfaceAddress returns an address of this host: the first of a network interface, or the given
// one.
func interfaceAddress(name string) (net.IP, error) {
	if ip := net.ParseIP(name); ip != nil {
		return ip, nil
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("the interface %q of GOCCL_INTERFACE or GLOO_SOCKET_IFNAME: %w", name, err)
	}

	addresses, err := i.Addrs()
	for _, a := range addresses {
		if n, isIP := a.(*net.IPNet); isIP && !n.IP.IsLinkLocalUnicast() {
			return n.IP, nil
		}
	}
	return nil, cmp.Or(err, fmt.Errorf("the interface %q of GOCCL_INTERFACE or GLOO_SOCKET_IFNAME has no address", name))
}
