package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// library is a peer of goccl.
type library struct {
	name, title string
	packages    string // Debian packages of the library
	// setUp finds the library and builds its program. It returns the version and
	// the settings to compare, or an error that names what is missing.
	setUp func(context.Context, workplace) (version string, entries []entry, err error)
}

var libraries = []library{
	{"openmpi", "Open MPI", "openmpi-bin libopenmpi-dev gcc", setUpOpenMPI},
	{"mpich", "MPICH", "mpich libmpich-dev gcc", setUpMPICH},
	{"gloo", "torch gloo", "python3-torch", setUpGloo},
}

// entry is a library with certain settings.
type entry struct {
	name string
	// launch returns the command that starts the ranks of the program. Its arguments follow: the
	// names of library and entry, the budget for a size in milliseconds, the largest number
	// of calls, the microseconds that a rank computes before each, and the sizes in bytes. It
	// prints the table.
	launch func(ranks int) child
}

// workplace is where programs are built and run. Both directories are removed at
// the end.
type workplace struct {
	dir    string // programs, and the launchers' files
	memory string // in memory, for data that ranks share; empty: the system has none
}

// launch returns a launch of the command with these variables, and TMPDIR in the workplace.
func (w workplace) launch(command func(ranks int) []string, env ...string) func(ranks int) child {
	return func(ranks int) child { return child{command(ranks), slices.Concat(env, []string{"TMPDIR=" + w.dir})} }
}

func libraryNames() (names []string) {
	for _, l := range libraries {
		names = append(names, l.name)
	}
	return names
}

// titleOf describes a contestant.
func titleOf(c table.Contestant) string {
	for _, l := range libraries {
		if l.name == c.Library {
			return l.title + ", " + c.Entry
		}
	}
	return c.Library + ", " + c.Entry
}

// measure runs the entry's program, which prints a row for each size.
func (e entry) measure(ctx context.Context, library string, ranks int, o options) ([]table.Row, error) {
	args := []string{library, e.name, o.budgetMS(), strconv.Itoa(maxCalls),
		strconv.FormatFloat(o.computeUS(), 'f', -1, 64)}
	for _, bytes := range o.sizes {
		args = append(args, strconv.Itoa(bytes))
	}
	return e.run(ctx, library, ranks, o, args, o.sizes)
}

// run runs the entry's program with arguments, which prints a row for each number of bytes.
func (e entry) run(ctx context.Context, library string, ranks int, o options, args []string, sizes []int) ([]table.Row, error) {
	c := e.launch(ranks)
	c.args = append(c.args, args...)
	text, err := c.output(ctx, o.limit, graceTime)
	var rows []table.Row
	if err == nil {
		rows, err = table.Parse(text)
	}

	for _, bytes := range sizes {
		if _, ok := findRow(rows, table.Contestant{Library: library, Entry: e.name}, ranks, bytes); !ok && err == nil {
			err = fmt.Errorf("it printed no row for %d bytes", bytes)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s, %d ranks: %w\nthe command was: %s", library, e.name, ranks, err, c)
	}
	return rows, nil
}

//go:embed programs/*.c programs/*.py programs/*.sh
var programs embed.FS

// write writes a program's source into the workplace.
func (w workplace) write(name string) (path string, err error) {
	source, err := programs.ReadFile("programs/" + name)
	if err != nil {
		return "", err
	}
	return w.save(name, string(source))
}

// save makes a file of the workplace.
func (w workplace) save(name, text string) (path string, err error) {
	path = filepath.Join(w.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// heapKept are settings of glibc for a library that allocates memory for each call. By
// default such memory comes from the kernel every time, which
// zeroes it page by page, and that takes as long as the all-reduce. Here it stays in
// the process (no mappings, no trimming), in huge pages if the kernel
// grants them. On a virtual machine with 2 cores this reduced 64 MiB
// between 2 ranks from 28 to 9 ms with Open MPI, and from 30 to 10 ms with MPICH.
var heapKept = []string{
	"MALLOC_MMAP_MAX_=0",
	"MALLOC_TRIM_THRESHOLD_=8589934592",
	"MALLOC_TOP_PAD_=268435456",
	"GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
}

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+\S*`)

// cores returns the number of physical cores of this machine, and of its logical
// processors.
func cores() (cores, processors int) {
	processors = runtime.NumCPU()
	if smt, err := os.ReadFile("/sys/devices/system/cpu/smt/active"); err == nil && smt[0] == '1' {
		return processors / 2, processors
	}
	return processors, processors
}
