package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked returns the words that the program offers at the end of a command line, with their meaning after a tab.
func asked(t *testing.T, words ...string) string {
	t.Helper()
	return printed(t, append([]string{asks}, words...)...)
}

func TestCompletion(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", "version: 1\nalgorithms: {direct: {module: direct}, mine: {module: ring}}\nrules: [{algorithm: direct}]\n")
	for line, want := range map[string]string{
		"":                               "",
		"ru":                             "run\tStart a program as several ranks, each a process, and wait for all\n",
		"help ru":                        "run\tStart a program as several ranks, each a process, and wait for all\n",
		"completion z":                   "zsh\t\n",
		"bench --tr":                     "--transport\tOverride defaults.transport, like dist.WithTransport\n",
		"bench --transport _":            "shm\t\nlocal\t\n",
		"bench --transport l":            "local\t\n",
		"bench --transport=l":            "--transport=local\t\n",
		"bench --transport = l":          "--transport=local\t\n", // as bash splits it
		"bench --transport =":            "--transport=shm\t\n--transport=local\t\n",
		"bench --transport local,s":      "local,shm\t\n",
		"bench --transport=local,s":      "--transport=local,shm\t\n",
		"bench --workload bert":          "bert_base\t\n",
		"bench --transport local op_b":   "op_broadcast\t\n",
		"bench --in-place all_g":         "all_gather\t\n", // the flag has no value
		"bench -b 4 all_g":               "all_gather\t\n",
		"bench -b4 all_g":                "all_gather\t\n",
		"bench all_reduce barrier all_g": "all_gather\t\n",
		"bench --algorithm _":            "auto\t\ndirect\t\nmine\t\n",
		"explain --collective barr":      "", // has no algorithm
		"bench --json a":                 "", // the shell completes names of files
		"bench --serv":                   "", // hidden
		"__":                             "",
		"run -n 4 ./train --gr":          "", // a flag of the program
		"run -n 4 -- --gr":               "",
		"run -n 4 --gr":                  "--grace\tTime between SIGTERM and SIGKILL\n",
		"no-such --gr":                   "",
	} {
		words := strings.Fields(strings.ReplaceAll(line, "_ ", " "))
		if strings.HasSuffix(line, " _") {
			words[len(words)-1] = ""
		}
		require.Equal(t, want, asked(t, words...), line)
	}
	require.Equal(t, []string{"bench", "completion", "config", "doctor", "explain", "help", "inspect", "man", "run"}, offered(asked(t, "")))
	require.Contains(t, offered(asked(t, "-")), "--version")

	writeFile(t, "ccl.yaml", "version: 7\n")
	require.Empty(t, asked(t, "bench", "--algorithm", ""), "there are no entries")
}

// offered returns the words without their meaning.
func offered(text string) (all []string) {
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(line, "\t")
		all = append(all, word)
	}
	return all
}

// Every name whose values are known is that of a flag, or of an argument.
func TestKnownValues(t *testing.T) {
	names := map[string]bool{}
	for _, n := range newParser().Model.Leaves(false) {
		for _, f := range n.Flags {
			names["--"+f.Name] = true
		}
		for _, arg := range n.Positional {
			names[arg.Name] = true
		}
	}
	for name, values := range known {
		require.True(t, names[name], name)
		require.NotEmpty(t, values(), name)
	}
}

// Each shell runs the script and shows what the program offers.
func TestCompletionInShells(t *testing.T) {
	for shell, test := range map[string]string{
		"bash": `source /dev/stdin <<<"$(goccl completion bash)"
complete -p goccl >&2 || exit
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _goccl; printf '%s\n' "${COMPREPLY[*]}"; }
try goccl bench --memory ""
try goccl bench --memory = al
try goccl bench --json ""`,
		"zsh": `compdef() { compdefs+=("$*") }
source <(goccl completion zsh)
[[ $compdefs == "_goccl goccl" ]] || exit
_describe() { found=("${(@P)2}"); print -r -- "${found[@]%%:*}" }
compset() { }
_files() { print }
try() { words=("$@"); CURRENT=$#; _goccl }
try goccl bench --memory ""
try goccl bench --memory=al | sed 's/^--memory=//'
try goccl bench --json ""`,
		"fish": `goccl completion fish | source
string join ' ' (complete -C "goccl bench --memory ")
string replace -- --memory= '' (complete -C "goccl bench --memory=al")
echo (complete -C "goccl bench --json no-such-file")`,
	} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not installed: its script is not tried", shell)
			}
			c, stderr := program(t)
			c.Path, c.Args = path, []string{shell, "-c", test}
			c.Dir = t.TempDir()
			require.NoError(t, os.Symlink(os.Args[0], filepath.Join(c.Dir, "goccl")))
			c.Env = append(c.Env, "PATH="+c.Dir+":"+os.Getenv("PATH"), "HOME="+c.Dir)
			out, err := c.Output()
			require.NoError(t, err, "%s", stderr)
			require.Equal(t, "private alloc\nalloc\n\n", strings.ReplaceAll(string(out), "alloc private", "private alloc")) // fish sorts
		})
	}
}
