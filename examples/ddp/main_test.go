package main

import (
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

// The output of the default model, trained in fewer and smaller steps, and that it learns.
func TestCommand(t *testing.T) {
	hideOthers(t)
	picture := filepath.Join(t.TempDir(), "loss.png")
	var out, errs strings.Builder
	status := command([]string{"-ranks", "2", "-epochs", "2", "-batch", "32", "-plot", picture}, &out, &errs)
	require.Zero(t, status, errs.String())
	require.Empty(t, errs.String())

	text := out.String()
	for _, want := range []string{
		"64-512-256-10 perceptron: 167178 float32 parameters",
		"1437 to train on, 360 to test",
		"\n1 rank, 32 samples per rank and step\n", "\n2 ranks, 16 samples per rank and step\n",
		"speed-up",
		"··· 1 rank, ─── 2 ranks",
		"picture: " + picture,
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "\x1b", "no colours where there is no terminal")
	require.Regexp(t, `\ncommunication: \d+\.\d % of the training time of rank 0 \(\d+\.\d{3} s of \d+\.\d\d s\):
\d+\.\d % waiting for slower ranks, \d+\.\d % copying and reducing\n`, text)
	require.Regexp(t, `\nweights: equal bit by bit on all 2 ranks \(sha256 [0-9a-f]{16}\.\.\.\)\n`, text)
	require.Greater(t, lastLine(t, text), 0.9)

	file, err := os.Open(picture)
	require.NoError(t, err)
	defer file.Close()
	_, err = png.Decode(file)
	require.NoError(t, err)
}

// The output in the tutorial is what the program prints, except for the numbers.
func TestTutorial(t *testing.T) {
	hideOthers(t)
	tutorial, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial", "README.md"))
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(tutorial), "<!-- printed by make demo -->\n```text\n")
	require.True(t, found)
	shown, _, found = strings.Cut(shown, "```")
	require.True(t, found)
	var out strings.Builder
	o := smallJob(2)
	o.ranks, o.plot = []dist.SpawnOption{dist.WithRanks(2)}, filepath.Join(t.TempDir(), "ddp-loss.png")
	require.NoError(t, learn(o, &out))
	printed := strings.Split(out.String(), "\n")
	for i, line := range printed {
		printed[i] = steady(line)
	}
	for line := range strings.Lines(shown) {
		require.Contains(t, printed, steady(strings.TrimSuffix(line, "\n")))
	}
}

// hideOthers lets the program know nothing of other programs, which run beside some tests.
func hideOthers(t *testing.T) {
	proc = t.TempDir()
	t.Cleanup(func() { proc = "/proc" })
}

// steady removes what differs from run to run.
func steady(line string) string {
	return regexp.MustCompile(`[0-9a-f]{16}|\d+(\.\d+)?| +`).ReplaceAllStringFunc(line, func(s string) string {
		if strings.TrimSpace(s) == "" {
			return " "
		}
		return "#"
	})
}

func TestResult(t *testing.T) {
	done := trained(3, 1, epoch{elapsed: time.Second, communicating: time.Second, working: 50 * time.Millisecond},
		epoch{elapsed: 3 * time.Second, communicating: time.Second, working: 150 * time.Millisecond, accuracy: 0.5})
	done.checksum = strings.Repeat("0123456789abcdef", 4)
	var out strings.Builder
	report{out: &out}.result([]*run{done})
	require.Equal(t, `
communication: 50.0 % of the training time of rank 0 (2.000 s of 4.00 s):
45.0 % waiting for slower ranks, 5.0 % copying and reducing
weights: equal bit by bit on all 3 ranks (sha256 0123456789abcdef...)
test accuracy: 0.5000
`, out.String())
	done.ranks = 1
	out.Reset()
	report{out: &out}.result([]*run{done})
	require.Contains(t, out.String(), " (2.000 s of 4.00 s)\nweights: equal bit by bit on all 1 rank ")
}

func TestLearn(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 7, 16} {
		t.Run(fmt.Sprintf("ranks=%d", ranks), func(t *testing.T) {
			var out strings.Builder
			o := smallJob(2)
			o.ranks = []dist.SpawnOption{dist.WithRanks(ranks)}
			require.NoError(t, learn(o, &out))
			require.Contains(t, out.String(), "on all "+plural(ranks)+" (sha256")
			require.Equal(t, min(ranks, 2), strings.Count(out.String(), " epoch "), "one rank is not compared with itself")
			require.Positive(t, lastLine(t, out.String()))
		})
	}
}

// lastLine returns the accuracy at the end of the output.
func lastLine(t *testing.T, out string) (accuracy float64) {
	t.Helper()
	end := regexp.MustCompile(`\ntest accuracy: (\d\.\d{4})\n$`).FindStringSubmatch(out)
	require.NotNil(t, end, "output ends %q", out[max(0, len(out)-80):])
	_, err := fmt.Sscan(end[1], &accuracy)
	require.NoError(t, err)
	return accuracy
}

func TestBadFlags(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"-ranks 0", "-ranks is 0"},
		{"-ranks two", `"two"`},
		{"-epochs 0", "-epochs is 0"},
		{"-batch -1", "-batch is -1"},
		{"-lr 0", "-lr is 0"},
		{"-lr NaN", "-lr is NaN"},
		{"-lr Inf", "-lr is +Inf"},
		{"-seed -1", `"-1"`},
		{"-plot loss.txt", `"loss.txt"`},
		{"-rank 3", "-rank"},
		{"4", `unexpected argument "4"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, errs strings.Builder
			require.Equal(t, 2, command(strings.Fields(c.args), &out, &errs))
			require.Empty(t, out.String())
			require.Contains(t, errs.String(), c.want)
			require.Contains(t, errs.String(), "ddp -h explains the flags")
		})
	}
}

func TestHelp(t *testing.T) {
	var out, errs strings.Builder
	require.Zero(t, command([]string{"-h"}, &out, &errs))
	require.Empty(t, errs.String())
	for _, flag := range []string{"-ranks", "-epochs", "-batch", "-lr", "-seed", "-config", "-algorithm", "-transport", "-plot"} {
		require.Contains(t, out.String(), "\n  "+flag+" ")
	}
	require.Contains(t, out.String(), "Examples:")
}

// Mistakes that only the training can find make it fail.
func TestFailures(t *testing.T) {
	for _, args := range [][]string{
		{"-algorithm", "nosuch"},
		{"-config", filepath.Join(t.TempDir(), "missing.yaml")},
		{"-plot", filepath.Join(t.TempDir(), "missing", "loss.png")},
	} {
		t.Run(args[0], func(t *testing.T) {
			var out, errs strings.Builder
			require.Equal(t, 1, command(append(args, "-epochs", "1", "-ranks", "1"), &out, &errs))
			require.Contains(t, errs.String(), filepath.Base(args[1]))
		})
	}
}
