package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// The table relates goccl's times to those of C with the same level of threads, and leaves out what
// was not measured.
func TestOverheadTable(t *testing.T) {
	of := func(e string, bytes int, p50 float64) table.Row {
		return table.Row{Contestant: table.Contestant{Library: "mpich", Entry: e}, Ranks: 2, Bytes: bytes, P50US: p50}
	}
	var out strings.Builder
	writeOverhead(&out, []table.Row{of(check, 0, 2), of(single, 4, 1), of(threads, 4, 1.5), of(direct, 4, 1.75), of(algorithm, 4, 4.2), of(algorithm, 1024, 9)})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "| MPICH | 2 | 4 B | 1.00 | 1.50 | 1.75 | +0.25 | 2.00 | 4.20 | 1.20 |", strings.Join(strings.Fields(lines[2]), " "))
}

// The whole comparison, with a fake Open MPI whose programs are the test binary.
func TestOverhead(t *testing.T) {
	bin := t.TempDir()
	script(t, bin, "mpicc.openmpi", `exec /bin/ln -s `+os.Args[0]+` "$3"`)
	script(t, bin, "mpirun.openmpi", `
[ "$1" = --version ] && { echo "mpirun (Open MPI) 9.8.7"; exit; }
while [ "$1" != -n ]; do shift; done
shift 2
`+fakePeer+`=rows exec "$@"`)

	script(t, bin, "goccl_mpi", fakePeer+`=overhead exec `+os.Args[0]+` "$@"`)
	script(t, bin, "go", `exec /bin/ln -s `+filepath.Join(bin, "goccl_mpi")+` "$3"`)
	t.Setenv("PATH", bin)
	t.Chdir(t.TempDir())
	var out, errs strings.Builder
	require.Zero(t, command([]string{"-overhead", "-only", "openmpi", "-ranks", "2", "-sizes", "0,4,1KiB", "-passes", "2", "-budget", "1ms"}, &out, &errs), errs.String())
	require.Contains(t, out.String(), "Open MPI 9.8.7; 2 passes\n")
	require.Regexp(t, `\| Open MPI \| +2 \| +1 KiB \| +3\.00 \| +3\.00 \| +4\.00 \| +\+1\.00 \| +2\.00 \| +6\.00 \| +1\.20 \|`, out.String())
	require.FileExists(t, "peers-overhead.csv")

	t.Setenv("PATH", t.TempDir())
	require.Equal(t, 1, command([]string{"-overhead"}, &out, &errs))
}

func init() {
	// Prints the rows of goccl_mpi for each size on its command line.
	fakes["overhead"] = func() {
		made := func(e string, bytes int, p50 float64) table.Row {
			return table.Row{Contestant: table.Contestant{Library: os.Args[1], Entry: e}, Ranks: 2, Bytes: bytes, Passes: 1, Calls: 7, P50US: p50, BestUS: p50, P90US: p50, P99US: p50, LeastUS: p50}
		}
		rows := []table.Row{made(check, 0, 2)}
		for _, text := range os.Args[4:] {
			bytes, err := parseSize(text)
			if err != nil {
				panic(err)
			}
			rows = append(rows, made(direct, bytes, 4), made(algorithm, bytes, 6))
		}

		if err := table.Write(os.Stdout, rows); err != nil {
			panic(err)
		}
	}
}
