package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// betweenNodes says what connects ranks on several nodes, for `goccl run --hosts`.
const betweenNodes = `The program needs the transport that connects ranks on several nodes:
	import _ "github.com/goccl/goccl/transport/mpi"
It needs none if goccl run is given on each node: see --nnodes.`

// hostList is the value of --hosts.
type hostList []host

// host is a machine and the number of ranks there.
type host struct {
	name  string
	ranks int
}

// Decode implements kong.MapperValue.
func (l *hostList) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("hosts", &text); err != nil {
		return err
	}

	for part := range strings.SplitSeq(text, ",") {
		name, count, counted := strings.Cut(part, ":")
		h := host{name, 1}
		var err error
		if counted {
			h.ranks, err = strconv.Atoi(count)
		}
		if name == "" || err != nil || h.ranks < 1 || strings.ContainsFunc(name, isOddInHost) {
			return fmt.Errorf("want hosts with their numbers of ranks, such as a:2,b:2, but got %q", text)
		}
		*l = append(*l, h)
	}

	return nil
}

// isOddInHost reports whether a rune is in no name or address of a host.
func isOddInHost(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
}

// ranks is the number of ranks on all hosts.
func (l hostList) ranks() (sum int) {
	for _, h := range l {
		sum += h.ranks
	}
	return sum
}

// join lists the hosts, each in its format, which gets the name and the number of ranks.
func (l hostList) join(each func(host) string) string {
	var all []string
	for _, h := range l {
		all = append(all, each(h))
	}
	return strings.Join(all, ",")
}

func (l hostList) withRanks() string {
	return l.join(func(h host) string { return fmt.Sprintf("%s:%d", h.name, h.ranks) })
}

func (l hostList) names() string { return l.join(func(h host) string { return h.name }) }

// clusterLauncher is a launcher that starts ranks on several hosts.
type clusterLauncher struct {
	name     string
	programs []string // its names, the surest first
	version  string   // part of its --version: "(OpenRTE) 4.1.4", "(Open MPI) 4.1.4"
	// line is its command line, without the program to start.
	line func(program string, l hostList) string
}

var clusterLaunchers = []clusterLauncher{
	{"Open MPI", []string{"mpirun.openmpi", "mpirun"}, "(Open", func(program string, l hostList) string {
		return fmt.Sprintf("%s -n %d --host %s", program, l.ranks(), l.withRanks())
	}},
	{"MPICH", []string{"mpiexec.hydra", "mpiexec.mpich", "mpiexec"}, "HYDRA", func(program string, l hostList) string {
		return fmt.Sprintf("%s -n %d -hosts %s", program, l.ranks(), l.withRanks())
	}},
	{"Slurm", []string{"srun"}, "slurm", func(program string, l hostList) string {
		for _, h := range l {
			if h.ranks != l[0].ranks { // Slurm's own distribution knows nothing of a number for each host
				each := l.join(func(h host) string { return strings.TrimSuffix(strings.Repeat(h.name+" ", h.ranks), " ") })
				return fmt.Sprintf(`printf '%%s\n' %s >hosts && SLURM_HOSTFILE=hosts %s -n %d --distribution=arbitrary`, strings.ReplaceAll(each, ",", " "), program, l.ranks())
			}
		}
		return fmt.Sprintf("%s -N %d -n %d --ntasks-per-node=%d -w %s", program, len(l), l.ranks(), l[0].ranks, l.names())
	}},
}

// installed returns the name by which the launcher is installed, or "".
func (c clusterLauncher) installed(ctx context.Context) string {
	for _, name := range c.programs {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		shown, _ := exec.CommandContext(ctx, path, "--version").CombinedOutput() // of another launcher, it may fail
		cancel()
		if bytes.Contains(shown, []byte(c.version)) {
			return name
		}
	}
	return ""
}

// checkHosts checks what --hosts is given with.
func (c *runCommand) checkHosts() error {
	switch program := c.program(); {
	case len(program) == 0 || program[0] == "":
		return fmt.Errorf("the program is missing, as in goccl run --hosts %s ./train", c.Hosts.withRanks())
	case c.Ranks != nil && int(*c.Ranks) != c.Hosts.ranks():
		return fmt.Errorf("-n %d and --hosts %s contradict each other: the hosts have %d ranks", *c.Ranks, c.Hosts.withRanks(), c.Hosts.ranks())
	}
	return nil
}

// elsewhere returns the error of --hosts, which shows how other launchers start the program on
// those hosts: those that are installed, or all.
func (c *runCommand) elsewhere(ctx context.Context) error {
	var lines []string
	program := quoted(c.program())
	for _, l := range clusterLaunchers {
		if name := l.installed(ctx); name != "" {
			lines = append(lines, l.line(name, c.Hosts)+" "+program)
		}
	}

	which := "Here is how the launchers that are installed start this program there:"
	if len(lines) == 0 {
		which = "Neither Open MPI's mpirun nor MPICH's mpiexec nor Slurm's srun is installed here. Any of them starts this program there:"
		for _, l := range clusterLaunchers {
			lines = append(lines, l.line(l.programs[len(l.programs)-1], c.Hosts)+" "+program)
		}
	}
	return usageError{errors.New("--hosts " + c.Hosts.withRanks() + ": goccl run starts processes of this machine only. " + which +
		"\n  " + strings.Join(lines, "\n  ") + "\n" + betweenNodes)}
}

// quoted returns words as a shell reads them.
func quoted(words []string) string {
	var all []string
	for _, w := range words {
		odd := func(r rune) bool { return !strings.ContainsRune("@%+=:,/", r) && isOddInHost(r) }
		if w == "" || strings.ContainsFunc(w, odd) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		all = append(all, w)
	}
	return strings.Join(all, " ")
}
