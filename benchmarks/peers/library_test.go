package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// fakeMPI returns a directory for PATH with fake commands of MPI: each "compiles" by making
// an empty file, and prints its version.
func fakeMPI(t *testing.T, suffix, version string) (dir string) {
	dir = t.TempDir()
	script(t, dir, "mpicc"+suffix, `: > "$3"`)
	script(t, dir, "mpirun"+suffix, "echo '"+version+"'")
	t.Setenv("PATH", dir)
	return dir
}

func TestMPIIsFound(t *testing.T) {
	const hydra = "HYDRA build details:\n    Version:                                 4.3.1"
	for _, c := range []struct {
		library, suffix, says, version string
	}{
		{"openmpi", ".openmpi", "mpirun.openmpi (OpenRTE) 4.1.4 Open MPI", "4.1.4"},
		{"openmpi", "", "mpirun (Open MPI) 5.0.8", "5.0.8"},
		{"mpich", ".mpich", hydra, "4.3.1"},
		{"mpich", "", hydra, "4.3.1"},
	} {
		dir := fakeMPI(t, c.suffix, c.says)
		w := workplace{dir: t.TempDir(), memory: "/in/memory"}
		l := libraries[slices.Index(libraryNames(), c.library)]
		version, entries, err := l.setUp(t.Context(), w)
		require.NoError(t, err)
		require.Equal(t, c.version, version)
		require.Equal(t, "default", entries[0].name)
		program := filepath.Join(w.dir, "mpi_allreduce."+c.library)
		require.FileExists(t, program)
		require.FileExists(t, filepath.Join(w.dir, "mpi_allreduce.c"))

		for _, e := range entries {
			launched := e.launch(3)
			require.Equal(t, filepath.Join(dir, "mpirun"+c.suffix), launched.args[0])
			require.Equal(t, []string{"-n", "3", program}, launched.args[len(launched.args)-3:])
			require.Contains(t, launched.env, "TMPDIR="+w.dir)
			require.Equal(t, e.name != "default", slices.Contains(launched.env, heapKept[0]), launched)
		}
	}
}

func TestMPIThatIsNotThere(t *testing.T) {
	fakeMPI(t, "", "mpirun (Open MPI) 5.0.8")
	_, _, err := setUpMPICH(t.Context(), workplace{dir: t.TempDir()})
	require.ErrorContains(t, err, "mpicc.mpich and mpirun.mpich are not in PATH, and ")
	require.ErrorContains(t, err, "mpirun belongs to another implementation")

	dir := fakeMPI(t, ".openmpi", "Open MPI 1.2.3")
	require.NoError(t, os.Remove(filepath.Join(dir, "mpicc.openmpi")))
	_, _, err = setUpOpenMPI(t.Context(), workplace{dir: t.TempDir()})
	require.EqualError(t, err, "mpicc.openmpi and mpirun.openmpi are not in PATH, nor are mpicc and mpirun")

	script(t, dir, "mpicc.openmpi", "echo no gcc >&2; exit 1")
	_, _, err = setUpOpenMPI(t.Context(), workplace{dir: t.TempDir()})
	require.ErrorContains(t, err, "mpi_allreduce.c does not compile")
	require.ErrorContains(t, err, "no gcc")
}

func TestOpenMPISettings(t *testing.T) {
	fakeMPI(t, ".openmpi", "Open MPI 4.1.4")
	w := workplace{dir: t.TempDir(), memory: "/in/memory"}
	_, entries, err := setUpOpenMPI(t.Context(), w)
	require.NoError(t, err)
	line := entries[1].launch(4096).String()
	require.Contains(t, line, " --mca btl_vader_backing_directory /in/memory ")
	require.Contains(t, line, " --mca btl_vader_eager_limit 65536 ")
	require.Contains(t, line, " --oversubscribe --map-by core --bind-to core:overload-allowed ")

	rules := filepath.Join(w.dir, "allreduce.rules")
	require.Contains(t, line, " --mca coll_tuned_dynamic_rules_filename "+rules+" ")
	require.FileExists(t, rules)
	require.Contains(t, entries[2].launch(4096).String(), " --mca btl_vader_eager_limit 262144 ")
	plain := entries[0].launch(4096).String()
	for _, setting := range []string{"eager", "rules", "bind"} {
		require.NotContains(t, plain, setting)
	}
	require.Equal(t, os.Geteuid() == 0, strings.Contains(line, "--allow-run-as-root"))

	require.Empty(t, openMPIPlaces(4, 4, 8))
	require.Equal(t, []string{"--use-hwthread-cpus"}, openMPIPlaces(5, 4, 8))
	require.Equal(t, []string{"--oversubscribe"}, openMPIPlaces(9, 4, 8))
	require.Equal(t, []string{"--bind-to", "core"}, openMPIBinding(4, 4, 8))
	require.Equal(t, []string{"--bind-to", "hwthread"}, openMPIBinding(5, 4, 8))
	require.Equal(t, []string{"--map-by", "core", "--bind-to", "core:overload-allowed"}, openMPIBinding(9, 4, 8))
}

// MPICH binds ranks only in its tuned settings, and only where each can have a core.
func TestMPICHBinding(t *testing.T) {
	fakeMPI(t, ".mpich", "HYDRA build details:\n    Version: 4.3.1")
	_, entries, err := setUpMPICH(t.Context(), workplace{dir: t.TempDir()})
	require.NoError(t, err)
	require.NotContains(t, entries[0].launch(1).String(), "-bind-to")
	require.Contains(t, entries[1].launch(1).String(), " -bind-to core -n 1 ")
	require.NotContains(t, entries[1].launch(4096).String(), "-bind-to")
}

// setUpGloo chooses the first python3 in PATH that has torch.
func TestGlooIsFound(t *testing.T) {
	bare, torch := t.TempDir(), t.TempDir()
	script(t, bare, "python3", "exit 1")
	script(t, torch, "python3", "echo 2.11.0")
	t.Setenv("PATH", bare)
	_, _, err := setUpGloo(t.Context(), workplace{dir: t.TempDir()})
	require.EqualError(t, err, "no python3 in PATH has torch")

	t.Setenv("PATH", bare+string(filepath.ListSeparator)+torch)
	dir := t.TempDir()
	version, entries, err := setUpGloo(t.Context(), workplace{dir: dir})
	require.NoError(t, err)
	require.Equal(t, "2.11.0", version)
	require.Equal(t, []string{filepath.Join(torch, "python3"), filepath.Join(dir, "gloo_allreduce.py"), "8"}, entries[0].launch(8).args)
	require.Equal(t, []string{"TMPDIR=" + dir}, entries[0].launch(8).env)
}

// All programs follow the same timing rule, and those that do not print by package table print its
// columns.
func TestProgramsAgree(t *testing.T) {
	for _, p := range []struct{ name, rule, shared string }{
		{"mpi_allreduce.c", "WARM_UP = 3, MIN_CALLS = 5 ", ""},
		{"gloo_allreduce.py", "WARM_UP, MIN_CALLS = 3, 5 ", ""},
		{"goccl_allreduce/compute.go", "const ( MinRounds = 5 // at least warmUp = 3 ", "internal/program/program.go"},
	} {
		name := p.name
		source, err := os.ReadFile("programs/" + name)
		require.NoError(t, err)
		if p.shared != "" {
			shared, err := os.ReadFile("programs/" + p.shared)
			require.NoError(t, err)
			source = append(source, shared...)
		}

		text := strings.Join(strings.Fields(string(source)), " ")
		for _, same := range []string{"* 1021 +", "^ h >> 16) * 0x45d9f3b", "0.9 + 0.2 *", "<< 13", ">> 7", "<< 17"} {
			require.Contains(t, strings.ToLower(strings.ReplaceAll(text, " ", "")), strings.ReplaceAll(same, " ", ""), name)
		}
		if p.shared == "" {
			require.Contains(t, strings.NewReplacer(`" "`, "", `"+ "`, "").Replace(text), table.Columns, name)
		}
		require.Contains(t, text, p.rule, name)
	}
}
