package mesh

import (
	"cmp"
	"fmt"
	"net"
	"os"
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
// The caller sets Lanes, and adds Facts.
func FromEnvironment(getenv func(string) string, j *transport.Job) (*Config, error) {
	c := &Config{
		Rank: j.Rank, Size: j.Size, Secret: j.Secret, Memory: memoryOfHost(),
		Interface:  cmp.Or(getenv("GOCCL_INTERFACE"), firstOf(getenv("GLOO_SOCKET_IFNAME"))),
		Job:        fmt.Sprintf("%s/%s/%d", cmp.Or(getenv("GOCCL_SHM_NAME"), getenv("TORCHELASTIC_RUN_ID")), getenv("TORCHELASTIC_RESTART_COUNT"), j.Attempt),
		IsLoopback: j.Apart == "",
		LocalRank:  number(getenv("LOCAL_RANK")), LocalSize: number(getenv("LOCAL_WORLD_SIZE")),
	}

	if build, err := launchenv.Build(); err == nil {
		c.Facts = []Fact{{"build of the program", build}}
	}

	host, port := strings.TrimSuffix(strings.TrimPrefix(getenv("MASTER_ADDR"), "["), "]"), number(getenv("MASTER_PORT"))
	isLoopback := host == "localhost" || net.ParseIP(host).IsLoopback()
	switch {
	case j.Apart == "" && getenv(launchenv.ResultVariable) != "":
		c.Rendezvous = launcherFile{getenv, j.Attempt}
		return c, nil
	case host == "" || port == 0:
		return nil, &transport.MissingConfigurationError{
			Missing: []string{"MASTER_ADDR", "MASTER_PORT"},
			Message: fmt.Sprintf("transport %q: %s; set MASTER_ADDR and MASTER_PORT, to an address of rank 0's node and a port that is free there, on all ranks, as torchrun does, or start them with goccl run", transportName, j.Origin),
		}
	case port < 0 || port > 65535:
		return nil, &transport.NotAvailableError{Transport: transportName, Reason: fmt.Sprintf("MASTER_PORT=%s: ports are numbers from 1 to 65535", getenv("MASTER_PORT"))}
	case j.Apart == "" && !isLoopback:
		host = loopback // the node's own name may stand for another address
	case j.Apart == "":
	case isLoopback:
		c.IsLoopback = true
	// Other hosts can reach it.
	case j.Secret == "" && !launchenv.IsOpen(getenv):
		return nil, &transport.MissingConfigurationError{
			Missing: []string{launchenv.SecretFileVariable, launchenv.SecretVariable},
			Message: fmt.Sprintf("transport %q: %s, and %s: without a secret, whoever reaches a rank could join; %s", transportName, j.Origin, j.Apart, launchenv.SecretRemedy),
		}
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

// firstOf returns the first name of a list.
func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return first
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

// memoryOfHost returns a text that is equal for processes that can share memory, and see each
// other's process ids: of one boot of a machine, one pid namespace and one /dev/shm. It is "" if
// this process cannot tell.
func memoryOfHost() string {
	boot, err1 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, err2 := os.Readlink("/proc/self/ns/pid")
	mounts, err3 := os.ReadFile("/proc/self/mountinfo")
	if cmp.Or(err1, err2, err3) != nil {
		return ""
	}
	for mount := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(mount); len(fields) > 4 && fields[4] == "/dev/shm" { // proc_pid_mountinfo(5)
			return strings.Join([]string{strings.TrimSpace(string(boot)), namespace, fields[2]}, " ")
		}
	}
	return ""
}
