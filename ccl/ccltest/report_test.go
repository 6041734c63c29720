package ccltest

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
)

// A failure names the broken rule and the command that reproduces it.
func TestFailureText(t *testing.T) {
	flags := ""
	if raceEnabled {
		flags += " -race"
	}
	if testing.Short() {
		flags += " -short"
	}
	four := &check{name: "Four", rule: "it is 4"}
	got := failure(errors.New("rank 2 got 5"), four, "TestA/all_reduce/poll+jitter")
	want := `rank 2 got 5
rule: Four: it is 4
again: go test` + flags + ` -run '^TestA$/^all_reduce$/^poll\+jitter$' github.com/goccl/goccl/ccl/ccltest`
	if got != want {
		t.Errorf("%s\ninstead of\n%s", got, want)
	}
	if got := failure(errors.New("rank 2 got 5"), four, "FuzzA"); strings.Contains(got, "again:") {
		t.Errorf("an input that has no name yet cannot be named, but %s", got)
	}
}

// victimFault names the environment variable by which TestReplay tells processes of
// its own which fault TestVictim's kernel has.
const victimFault = "CCLTEST_VICTIM_FAULT"

// TestVictim is a conformance test as kernel authors write it. Its kernel is right unless
// TestReplay gives it a fault.
func TestVictim(t *testing.T) {
	kernel := chainKernel(fault(os.Getenv(victimFault)))
	if os.Getenv(victimFault) == string(twoFaults) {
		kernel = scrambling()
		kernel.Cost = func(ccl.Shape) ccl.Cost { return ccl.Cost{} }
	}
	Test(t, &ccl.Algorithm{
		Name: "victim", Doc: "an algorithm of the tests",
		Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollBroadcast: kernel},
	})
}

const twoFaults fault = "declares no cost, and changes the root's buffer"

// If several checks fail, the last line about the kernel names the one to mend first.
func TestSeveralFailures(t *testing.T) {
	v := runVictim(t, twoFaults, "^TestVictim$/^broadcast$/^(Cost|Leave)$")
	if len(v.rules) != 2 {
		t.Fatalf("the rules are %v", v.rules)
	}
	hint, rule := strings.Index(v.output, "begin with the first, Cost"), strings.LastIndex(v.output, "rule: ")
	if hint < rule {
		t.Errorf("it does not end with where to begin:\n%s", v.output)
	}
}

// The command that a failure prints runs the case that failed and no other, and it
// fails again by the same rule.
func TestReplay(t *testing.T) {
	for _, f := range []fault{rootZero, fullCircle} {
		t.Run(string(f), func(t *testing.T) {
			first := runVictim(t, f, "^TestVictim$")
			if len(first.commands) == 0 {
				t.Fatalf("nothing failed:\n%s", first.output)
			}
			pattern := regexp.MustCompile(`^go test.* -run '(.*)' github\.com/goccl/goccl/ccl/ccltest$`)
			match := pattern.FindStringSubmatch(first.commands[0])
			if match == nil {
				t.Fatalf("the command is %s", first.commands[0])
			}
			again := runVictim(t, f, match[1])
			if len(again.commands) != 1 || again.commands[0] != first.commands[0] || again.rules[0] != first.rules[0] {
				t.Errorf("at first\n%v\n%v\nand again\n%v\n%v", first.rules, first.commands, again.rules, again.commands)
			}
			if cases := regexp.MustCompile(`=== RUN .*/ranks=`).FindAllString(again.output, -1); len(cases) != 1 {
				t.Errorf("it ran %d cases:\n%s", len(cases), again.output)
			}
			if right := runVictim(t, none, match[1]); len(right.commands) != 0 {
				t.Errorf("without a fault it fails too:\n%s", right.output)
			}
		})
	}
}

// FuzzVictim is a fuzz test as kernel authors write it. Its kernel is right unless TestFuzzSkipsAfterHang
// gives it a fault.
func FuzzVictim(f *testing.F) {
	kernel := chainKernel(none)
	if os.Getenv(victimFault) == string(circle) {
		kernel.Run = func(c *ccl.Call) error { return c.Recv((c.Rank()+1)%c.Size(), c.Out()) }
	}
	s := newSubject(&ccl.Algorithm{
		Name: "victim", Doc: "an algorithm of the tests",
		Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollBroadcast: kernel, ccl.CollAllReduce: ringReduceKernel(none)},
	}, nil)
	s.timeout = time.Second
	s.fuzz(f)
}

const circle fault = "all ranks receive, and none sends"

// A kernel that hangs does so once: its other calls are skipped, with the reason, and those of other kernels are
// not.
func TestFuzzSkipsAfterHang(t *testing.T) {
	v := runVictim(t, circle, "^FuzzVictim$")
	if fails := strings.Count(v.output, "    --- FAIL: FuzzVictim/"); fails != 1 {
		t.Errorf("%d calls fail:\n%s", fails, v.output)
	}
	if skipped := strings.Count(v.output, "the kernel for broadcast has hung, and this call would last 1s"); skipped < 16 {
		t.Errorf("%d calls are skipped:\n%s", skipped, v.output)
	}
	if passed := strings.Count(v.output, "    --- PASS: FuzzVictim/"); passed < 16 {
		t.Errorf("%d calls pass:\n%s", passed, v.output)
	}
}

// verdict is what a run of the victim printed.
type verdict struct {
	output          string
	rules, commands []string
}

func runVictim(t *testing.T, f fault, pattern string) verdict {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run="+pattern)
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Env = append(os.Environ(), victimFault+"="+string(f))
	output, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	v := verdict{output: string(output)}
	for line := range strings.Lines(v.output) {
		line = strings.TrimSpace(line)
		if rule, ok := strings.CutPrefix(line, "rule: "); ok {
			v.rules = append(v.rules, rule)
		}
		if command, ok := strings.CutPrefix(line, "again: "); ok {
			v.commands = append(v.commands, command)
		}
	}
	if (err != nil) != (len(v.commands) > 0) {
		t.Fatalf("%v, but the output is\n%s", err, output)
	}
	return v
}
