package doctor

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/cgroup"
	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/reduce"
)

// host is a machine, whose files are below root.
type host struct{ root string }

func (h host) path(name string) string     { return h.root + name }
func (h host) contents(name string) string { return measure.Contents(h.path(name)) }

// Machine returns findings about the hardware and the system. Root is "" for this machine;
// tests pass a directory with the files of another.
func Machine(m measure.Machine, root string, getenv func(string) string) []Finding {
	h := host{root}
	job, _ := launchenv.Detect(getenv) // Launcher reports the error
	return []Finding{
		processors{
			online: len(cores.Parse(h.contents("/sys/devices/system/cpu/online"))),
			usable: m.Cores, gomaxprocs: m.GOMAXPROCS, asked: getenv("GOMAXPROCS"), quota: cgroup.CPUQuota(root),
			pinned: job != nil && m.Cores == 1,
		}.finding(),
		ok(PartMachine, "cpu", "%s", join(m.CPU, m.Caches)),
		vectors(m.Arch, reduce.Implementation(), measure.BuildSetting("-tags"), measure.BuildSetting("-race")),
		h.memory(),
		h.nodes(),
		h.hugePages(),
		ok(PartMachine, "system", "%s", join(strings.TrimSpace(m.OS+"/"+m.Arch+" "+m.Kernel), m.Go, revision(m.Revision))),
		h.container(getenv),
	}
}

// processors are the cores that ranks may use.
type processors struct {
	online     int // of the machine; 0: unknown
	usable     int // by this process's affinity
	gomaxprocs int
	asked      string // GOMAXPROCS in the environment
	quota      cgroup.Limit
	pinned     bool // this process is a rank, and has one core
}

func (p processors) finding() Finding {
	says := fmt.Sprintf("%d usable", p.usable)
	if p.online > 0 {
		says += fmt.Sprintf(" of %d", p.online)
	}

	if p.quota.File == "" {
		says += ", no quota"
	} else {
		says += fmt.Sprintf(", quota of %.4g (%s)", p.quota.Value, p.quota.File)
	}
	says += fmt.Sprintf("; GOMAXPROCS %d", p.gomaxprocs)
	switch {
	case p.asked != "":
		says += " by the environment"
	case p.gomaxprocs < p.usable && p.quota.File != "":
		says += " by the quota"
	}

	f := ok(PartMachine, "cores", "%s", says)
	if p.pinned {
		return f
	}

	polling := min(p.usable, p.gomaxprocs)
	switch {
	// A rank that polls uses up a quota below one core, whatever GOMAXPROCS is.
	case p.quota.File != "" && p.quota.Value < 1:
		return f.with(Note, "a rank that polls uses up the quota, and then nothing runs until its next period: allow at least one core")
	// Too many goroutines.
	case p.quota.File != "" && float64(polling) > p.quota.Value:
		return f.with(Note, fmt.Sprintf("%d ranks that poll use up the quota, and then nothing runs until its next period: "+
			"set GOMAXPROCS=%d, or allow more", polling, int(p.quota.Value)))
	case p.gomaxprocs > p.usable:
		return f.with(Note, "more goroutines run than cores: unset GOMAXPROCS")
	// Too few.
	case p.gomaxprocs < p.usable && p.quota.File == "":
		return f.with(Note, "goroutine ranks leave cores unused: unset GOMAXPROCS, unless ranks are processes")
	case polling == 1 && p.usable == 1:
		return f.with(Note, "ranks take turns on one core and sleep while they wait: a second core makes them much faster")
	}
	return f
}

// vectors returns a finding about the implementation of reductions.
func vectors(arch, implementation, tags, race string) Finding {
	f := ok(PartMachine, "vectors", "reductions in %s", implementation)
	if implementation != "Go" {
		return f
	}

	switch {
	case slices.Contains(strings.Split(tags, ","), "noasm"):
		f.Says += ", since this program was built with -tags noasm"
		return f.with(Note, "build without the tag: assembly is several times faster")
	case race == "true":
		f.Says += ", since this program was built with -race"
		return f.with(Note, "the race detector does not see what assembly does; without it reductions are several times faster")
	case arch == "amd64":
		f.Says += ", since this processor has no AVX2, or its virtual machine hides it"
		return f.with(Note, "")
	}

	f.Says += ": there is assembly for amd64 only"
	return f
}

func revision(r string) string {
	if r == "" {
		return ""
	}
	return "revision " + r
}

func (h host) memory() Finding {
	total := kib(measure.Info(h.path("/proc/meminfo"), "MemTotal"))
	available := kib(measure.Info(h.path("/proc/meminfo"), "MemAvailable"))
	f := ok(PartMachine, "memory", "%s, %s available", Amount(total), Amount(available))
	if total == 0 {
		f.Says = unknown
	}
	if l := cgroup.MemoryLimit(h.root, cgroup.Self); l.File != "" {
		f.Says += fmt.Sprintf("; limit of %s (%s), shared memory included; %s free in control groups", Amount(l.Value), l.File, Amount(cgroup.MemoryFree(h.root).Value))
	}
	killed := 0.0 // those of a group are among its parent's
	for _, n := range cgroup.OutOfMemory.Counts(h.root, cgroup.Self) {
		killed = max(killed, n)
	}
	if killed > 0 {
		f.Says += fmt.Sprintf("; %.0f processes of the control groups were killed at a limit", killed)
	}
	return f
}

// kib returns a number of /proc/meminfo in bytes, 0 if it is unknown.
func kib(text string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
	return n * 1024
}

const unknown = "unknown"

func (h host) nodes() Finding {
	switch n := len(cores.Parse(h.contents("/sys/devices/system/node/online"))); n {
	case 0:
		return ok(PartMachine, "NUMA", unknown)
	case 1:
		return ok(PartMachine, "NUMA", "1 node")
	default:
		return ok(PartMachine, "NUMA", "%d nodes", n).with(Note,
			"bind a job that fits to one node (numactl --cpunodebind=0 --membind=0); otherwise prefer goccl run, which keeps neighbouring ranks on one node")
	}
}

func (h host) hugePages() Finding {
	const dir = "/sys/kernel/mm/transparent_hugepage/"
	private, shared := bracketed(h.contents(dir+"enabled")), bracketed(h.contents(dir+"shmem_enabled"))
	return ok(PartMachine, "huge pages", "transparent: %s; for shared memory: %s", private, shared)
}

// bracketed returns the chosen word of a Linux list: "always [madvise] never".
func bracketed(list string) string {
	_, after, _ := strings.Cut(list, "[")
	if word, _, found := strings.Cut(after, "]"); found {
		return word
	}
	return unknown
}

// container returns a finding about signs of a container. All ranks of a job must be in
// one container.
func (h host) container(getenv func(string) string) Finding {
	var signs []string
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(h.path(file)); err == nil {
			signs = append(signs, file)
		}
	}
	for _, variable := range []string{"container", "KUBERNETES_SERVICE_HOST"} {
		if value := getenv(variable); value != "" {
			signs = append(signs, variable+"="+value)
		}
	}
	// The initial pid namespace has this number, PROC_PID_INIT_INO.
	if link, err := os.Readlink(h.path("/proc/self/ns/pid")); err == nil && link != "pid:[4026531836]" {
		signs = append(signs, "a namespace of processes of its own")
	}

	if runtime.GOOS != "linux" && h.root == "" {
		return ok(PartMachine, "container", unknown)
	}
	if len(signs) == 0 {
		return ok(PartMachine, "container", "no sign of one")
	}
	return ok(PartMachine, "container", "signs of one: %s; the ranks of a job have to share /dev/shm: start them in one", strings.Join(signs, ", "))
}

// join joins the texts that are not empty, or returns "unknown".
func join(parts ...string) string {
	known := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return cmp.Or(strings.Join(known, "; "), unknown)
}
