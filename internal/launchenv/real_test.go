package launchenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reportDir names the directory in which a rank that a launcher has started writes the
// result of Detect.
const reportDir = "TEST_GOCCL_LAUNCHED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(reportDir); dir != "" {
		os.Exit(report(dir))
	}
	os.Exit(m.Run())
}

// verdict is the result of Detect in a rank.
type verdict struct {
	Job *Job
	Err string
}

func report(dir string) int {
	var v verdict
	j, err := Detect(os.Getenv)
	if v.Job = j; err != nil {
		v.Err = err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return 1
	}
	f, err := os.CreateTemp(dir, "rank")
	if err != nil {
		return 1
	}
	_, err = f.Write(text)
	if errors.Join(err, f.Close()) != nil {
		return 1
	}
	return 0
}

// A real launcher, and its arguments for n ranks.
type real struct {
	by       string
	commands []string // under which it may be installed
	says     string   // in its --version, to distinguish launchers of one name
	broken   string   // in its output if it is installed but cannot start anything
	args     func(dir, n string) []string
}

var reals = map[string]real{
	"Open MPI": {"Open MPI", []string{"mpirun.openmpi", "mpirun"}, "Open MPI", "", func(_, n string) []string {
		return []string{"--allow-run-as-root", "--oversubscribe", "-n", n}
	}},
	"MPICH": {"PMI", []string{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, "HYDRA", "", func(_, n string) []string {
		return []string{"-n", n}
	}},
	"torchrun": {"torchrun", []string{"torchrun"}, "", "NotFoundError", func(dir, n string) []string {
		// Redirected as by -r and -t, since some versions fail otherwise. The rest is what
		// --standalone does, without the port that all such jobs of the machine share.
		id := strings.ReplaceAll(strings.TrimPrefix(dir, "/"), "/", "-") // of this start
		return []string{"--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0", "--rdzv_id", id, "--no_python", "--nproc_per_node", n, "--monitor_interval", "0.05", "--log_dir", dir, "-r", "0:1", "-t", "0:1"}
	}},
	"Slurm": {"Slurm", []string{"srun"}, "", "srun: error: ", func(_, n string) []string { return []string{"-N", "1", "-n", n} }},
}

// command returns the installed launcher.
func (r real) command(t *testing.T) string {
	var why []string
	for _, name := range r.commands {
		path, err := exec.LookPath(name)
		if err != nil {
			why = append(why, name+" is not installed")
			continue
		}
		if r.says == "" {
			return path
		}
		out, err := exec.Command(path, "--version").CombinedOutput()
		if err == nil && strings.Contains(string(out), r.says) {
			return path
		}
		why = append(why, name+" is another one or does not start")
	}
	skip(t, strings.Join(why, ", "))
	return ""
}

func skip(t *testing.T, why string) {
	t.Skipf("only TestLaunched has what this launcher sets, as it was seen elsewhere: %s", why)
}

// start starts n ranks, each by the command `before` and the path of this program, and
// returns their results.
func (r real) start(t *testing.T, command, n string, before ...string) (verdicts []verdict) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir, log := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), command, append(append(r.args(log, n), before...), self)...)
	for _, v := range os.Environ() {
		if !foreign(v) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, reportDir+"="+dir)
	// The input must not end before the launcher: MPICH's mpiexec forwards the end
	// to its proxy, and dies by SIGPIPE if that, as quick as these ranks, is gone by
	// then.
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.CombinedOutput()
	if err != nil && r.broken != "" && strings.Contains(string(out), r.broken) {
		skip(t, fmt.Sprintf("%s does not work: %s", command, out))
	}
	require.NoError(t, err, "%s", out)
	files, err := filepath.Glob(filepath.Join(dir, "rank*"))
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var v verdict
		require.NoError(t, json.Unmarshal(text, &v), "%s", text)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// foreign reports whether a variable may come from a launcher around these tests.
func foreign(variable string) bool {
	for _, prefix := range []string{"GOCCL_", "OMPI_", "PMIX_", "PMI_", "HYD", "MPI", "SLURM_STEP", "SLURM_PROCID", "TORCHELASTIC_", "MASTER_", "RANK=", "WORLD_SIZE=", "LOCAL_"} {
		if strings.HasPrefix(variable, prefix) {
			return true
		}
	}
	return false
}

// Detect understands real launchers: every rank has another number and all
// have one key, which differs at the next start.
func TestRealLaunchers(t *testing.T) {
	for name, r := range reals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := r.command(t)
			keys := map[string]bool{}
			for _, before := range [][]string{nil, {"/bin/sh", "-c", `"$0"; exit $?`}} { // directly, and through a shell
				ranks, job := map[int]bool{}, map[string]bool{}
				for _, v := range r.start(t, command, "3", before...) {
					require.Empty(t, v.Err)
					require.NotNil(t, v.Job)
					require.Equal(t, r.by, v.Job.By)
					require.Equal(t, 3, v.Job.Size)
					ranks[v.Job.Rank], job[v.Job.Key], keys[v.Job.Key] = true, true, true
				}
				require.Equal(t, map[int]bool{0: true, 1: true, 2: true}, ranks)
				require.Len(t, job, 1)
			}
			require.Len(t, keys, 2)
		})
	}
}
