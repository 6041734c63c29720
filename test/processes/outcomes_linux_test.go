package processes

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccl/goccl/transport/shm"
)

var outcomes = flag.Int("outcomes", 1, "runs of each way in which a rank fails, under each launcher")

// An outcome is what is said of a failure of rank 2. "…" stands for any text.
type outcome struct {
	failure  string   // one of ways, or "early return"
	headline string   // of goccl run
	cause    []string // lines below the headline
	status   int      // exit status of goccl run
	torchrun string   // torchrun's report of that rank: number, exit status and message
	last     string   // the last line of every other rank, and torchrun's report of one; "": other launchers tell nobody
	group    string   // what a control group limits: "memory" of the job, "pids" of rank 2, or ""
	limit    string   // of that
}

var allOutcomes = []outcome{
	{"panic", "rank 2 (pid …) was the first to fail, after …: exit status 1",
		[]string{"panic: runtime error: index out of range [5] with length 3", "in processes.pick at failing_linux_test.go:…"}, 1,
		"rank 2, status 1: panic: runtime error: index out of range [5] with length 3",
		"aborted by rank 2: …runtime error: index out of range [5] with length 3", "", ""},
	{"error", "rank 2 (pid …) was the first to fail, after …: exit status 1",
		[]string{"load batch: open shard-5: no such file or directory"}, 1,
		"rank 2, status 1: …load batch: open shard-5: no such file or directory",
		"aborted by rank 2: …load batch: open shard-5: no such file or directory", "", ""},
	{"exit", "rank 2 (pid …) was the first to fail, after …: exit status 3",
		[]string{"out of luck"}, 3, "rank 2, status 3: ", lost, "", ""},
	{"kill", "rank 2 (pid …) was the first to fail, after …: SIGKILL (killed)",
		nil, 137, "rank 2, status -9: ", lost, "", ""},
	{"hang", "rank 2 (pid …) was waited for in vain: the job failed after …",
		[]string{"rank 2 was here (sleep):", "in processes.load at failing_linux_test.go:…"}, 1, late, late, "", ""},
	{"mismatch", "rank 2 (pid …) made another call than the others: the job failed after …",
		[]string{differs}, 1, differs, differs, "", ""},
	{"memory", "rank 2 (pid …) was the first to fail, after …: SIGKILL (killed); the control group ran out of memory: …",
		nil, 137, "rank 2, status -9: ", lost, "memory", "268435456"},
	{"threads", "rank 2 (pid …) was the first to fail, after …: exit status 2",
		[]string{"runtime…thread…"}, 2, "rank 2, status 2: ", lost, "pids", "100"},
	{"files", "rank 2 (pid …) was the first to fail, after …: exit status 1; raise ulimit -n",
		[]string{"too many open files"}, 1, few, few, "", ""},
	{"another timeout", "rank 2 (pid …) has another configuration than the others: the job failed after …",
		[]string{configured}, 1, configured, configured, "", ""},
	{"early return", "rank 2 (pid …) left while others needed it: the job failed after …",
		[]string{lost}, 1, lost, lost, "", ""},
	{"early end", "rank 2 (pid …) left while others needed it: the job failed after …",
		[]string{"rank 2 ended, with status 0, and did not join the others: …"}, 1, "", "", "", ""},
	{"exit behind a pipe", "rank 2 (pid …) was the first to fail, after …: exit status 0, but its program has ended without leaving its group (in a shell, see set -e and set -o pipefail)",
		[]string{"out of luck"}, 1, lost, lost, "", ""},
	{"error behind a pipe", "rank 2 (pid …) was the first to fail, after …: exit status 0, but its program has failed (in a shell, see set -e and set -o pipefail)",
		[]string{"load batch: open shard-5: no such file or directory"}, 1,
		"aborted by rank 2: …load batch: open shard-5: no such file or directory",
		"aborted by rank 2: …load batch: open shard-5: no such file or directory", "", ""},
}

// Parts of the errors of the other ranks.
const (
	few        = "too many open files"
	configured = "ranks disagree on defaults.timeout: …7s on rank 2 (option)"

	lost    = "peer lost: rank 2 (pid …) is gone"
	late    = "timed out after 500ms…rank 2"
	differs = "ranks disagree on count: …63 on rank 2"
)

// says reports whether a text has a line of that pattern, of this rank in place of rank 2.
func says(text, pattern string, rank int) bool {
	p := regexp.QuoteMeta(strings.ReplaceAll(pattern, "rank 2", fmt.Sprint("rank ", rank)))
	return regexp.MustCompile(`(?m)` + strings.ReplaceAll(p, "…", ".*")).MatchString(text)
}

// However a rank fails, goccl run and torchrun name it and the cause, and so does every other rank.
func TestOutcomes(t *testing.T) {
	tool := buildTool(t)
	t.Cleanup(func() { // ranks that are ended while they say that they can open no file leave a link
		for _, prefix := range []string{"torchrun-outcomes-", "openmpi-"} {
			if err := shm.RemoveLeftovers(prefix); err != nil {
				t.Log(err) // of jobs that run beside this one
			}
		}
	})
	guide, err := os.ReadFile("../../docs/reference/outcomes.txt")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(*seed, 3))
	table := "| rank 2 | `goccl run` says | `goccl run` | torchrun | mpirun |\n|---|---|---|---|---|\n"
	for _, o := range allOutcomes {
		row := o.row()
		if !strings.Contains(string(guide), row) {
			t.Errorf("docs/reference/outcomes.txt has no row\n%s", row)
		}
		for _, by := range []starter{gocclRun{tool}, torchrun{}, mpirun{}} {
			if by != (gocclRun{tool}) && o.last == "" {
				row += " |"
				continue
			}
			row += " " + o.count(t, by, random) + " |"
		}
		table += row + "\n"
	}
	t.Logf("seed %d: how often the cause was named:\n%s", *seed, table)
}

// buildTool builds goccl.
func buildTool(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "goccl")
	if text, err := exec.Command("go", "build", "-o", tool, "../../cmd/goccl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return tool
}

// count runs jobs that fail in this way, and returns how many of them were explained.
func (o *outcome) count(t *testing.T, by starter, random *rand.Rand) string {
	right, able := 0, true
	for i := range *outcomes {
		culprit, step := random.IntN(failingRanks), random.IntN(steps)
		part := fmt.Sprintf("%s=%s %d %d", failingVariable, strings.ReplaceAll(o.failure, " ", "-"), culprit, step)
		t.Run(fmt.Sprintf("%s/%T/%d/rank %d in step %d", o.failure, by, i, culprit, step), func(t *testing.T) {
			wrong, environment := "", append(clean(os.Environ()), part)
			if o.group == "pids" {
				environment = append(environment, groupVariable+"="+makeGroup(t, o.group, o.limit))
			}
			if wrong, able = by.start(t, o, culprit, environment); !able {
				t.Skip("it is not installed")
			}
			if wrong != "" {
				t.Error(wrong)
			} else {
				right++
			}
		})
	}
	if !able {
		return "not installed"
	}
	return fmt.Sprintf("%d of %d", right, *outcomes)
}

// row is the start of the outcome's row of the table.
func (o *outcome) row() string {
	text := "`" + o.headline + "`"
	for _, line := range o.cause {
		text += ", `" + line + "`"
	}
	return fmt.Sprintf("| %s | %s |", o.failure, text)
}
