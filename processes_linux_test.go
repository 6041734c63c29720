package goccl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const processes = "docs/guides/processes.md"

// TestProcessesGuide follows docs/guides/processes.md: it writes and builds the
// program, runs the commands of console blocks and compares their output with the guide,
// and runs the installed launchers of the sh block.
func TestProcessesGuide(t *testing.T) {
	home := t.TempDir()
	build(t, filepath.Join(home, "bin", "goccl"), "./cmd/goccl")
	commands, launchers := 0, 0
	for _, f := range fences(read(t, processes)) {
		if m := fileLabel.FindStringSubmatch(f.label); m != nil {
			source := filepath.Join(home, m[1])
			write(t, source, f.text)
			build(t, strings.TrimSuffix(source, ".go"), source)
		}
		switch f.language {
		case "console":
			is := ""
			for line := range strings.Lines(f.text) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					commands++
					is += line + shell(t, home, command)
				}
			}
			if is != f.text {
				t.Errorf("the commands print\n%s\nand the guide says\n%s", is, f.text)
			}
		case "sh":
			for line := range strings.Lines(f.text) {
				launchers++
				t.Run(strings.Fields(line)[0], func(t *testing.T) { startBy(t, home, line) })
			}
		}
	}
	if commands < 3 || launchers < 4 {
		t.Errorf("the guide has %d commands and %d launchers", commands, launchers)
	}
}

func build(t *testing.T, program, source string) {
	t.Helper()
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// shell runs a command line and returns its standard output.
func shell(t *testing.T, home, line string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
	c.Dir = home
	c.Env = append(os.Environ(), "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"),
		"GOCCL_CONFIG=", "GOCCL_ALGORITHM=", "GOCCL_TRANSPORT=", "GOCCL_TIMEOUT=", "GOCCL_WORLD_SIZE=",
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", line, err, complaints.String())
	}
	return string(out)
}

// startBy starts the guide's program with another launcher.
func startBy(t *testing.T, home, line string) {
	launcher := strings.Fields(line)[0]
	if _, err := exec.LookPath(launcher); err != nil {
		t.Skip(launcher, "is not installed")
	}
	if launcher == "srun" && exec.Command("sinfo").Run() != nil {
		t.Skip("no Slurm answers here; test/mpi starts one")
	}
	if launcher == "torchrun" && !strings.Contains(shell(t, home, "torchrun --help"), "--nproc-per-node") {
		t.Skip("this torchrun writes its flags in another way; internal/launchenv tests it")
	}
	if is := shell(t, home, line); is != "average of 4 ranks: [1.5 1]\n" {
		t.Errorf("%s prints %q", line, is)
	}
}

var (
	quoted = regexp.MustCompile("`[^`]+`")
	verb   = regexp.MustCompile(`%[-+#.0-9]*[a-zA-Z]`)
	joint  = regexp.MustCompile(`"\s*\+\s*"`) // of a text in two pieces
)

// TestTroubleshooting finds every text of the page's tables of errors in the code.
func TestTroubleshooting(t *testing.T) {
	var code strings.Builder
	for _, room := range []string{
		"ccl", "ccl/config", "dist", "transport/internal/groupsync", "internal/launchenv", "transport", "transport/local", "transport/mpi", "transport/mpi/internal/abi", "transport/shm", "transport/tcp", "transport/internal/packet", "transport/internal/mesh", "internal/handshake",
	} {
		files, err := filepath.Glob(room + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				code.WriteString(read(t, file))
			}
		}
	}
	texts := strings.ReplaceAll(joint.ReplaceAllString(code.String(), ""), `\"`, `"`)
	texts = verb.ReplaceAllString(texts, "…")

	const page = "docs/reference/troubleshooting.md"
	for heading, least := range map[string]int{"Processes": 30, "MPI": 10} {
		_, tables, _ := strings.Cut(read(t, page), "\n## "+heading+"\n")
		tables, _, _ = strings.Cut(tables, "\n## ")
		found := 0
		for line := range strings.Lines(tables) {
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			for _, text := range quoted.FindAllString(strings.Split(line, " | ")[0], -1) {
				found++
				if !strings.Contains(texts, strings.Trim(text, "`")) {
					t.Errorf("%s: no error says %s", page, text)
				}
			}
		}
		if found < least {
			t.Errorf("%s: the tables of %s have %d texts", page, heading, found)
		}
	}
}
