package tool

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/workload"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// completionCommand is `goccl completion`.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// scripts teach a shell to ask the program: they run it with the word asks, and the words of the
// command line up to the cursor.
//
//go:embed completion
var scripts embed.FS

const asks = "__complete"

// Help returns the text of `goccl completion --help` beside the flags.
func (c *completionCommand) Help() string {
	return `In ~/.bashrc: source <(goccl completion bash)

In ~/.zshrc, after compinit: source <(goccl completion zsh)

In ~/.config/fish/config.fish: goccl completion fish | source`
}

// Run prints the script.
func (c *completionCommand) Run(stdout io.Writer) error {
	script, err := scripts.ReadFile("completion/goccl." + c.Shell)
	if err == nil {
		_, err = stdout.Write(script)
	}
	return err
}

// complete prints what the last of the words can become: a word in each line, a tab, and its meaning.
// Without any the shell completes names of files.
func complete(stdout io.Writer, app *kong.Application, words []string) error {
	var b strings.Builder
	for _, c := range completed(app, words) {
		fmt.Fprintf(&b, "%s\t%s\n", c.word, c.help)
	}
	_, err := io.WriteString(stdout, b.String())
	return err
}

// candidate is a word that can stand at the end of a command line.
type candidate struct{ word, help string }

func completed(app *kong.Application, words []string) []candidate {
	words = joined(words)
	if len(words) == 0 {
		return nil
	}
	p := place{node: app.Node}
	last := len(words) - 1
	for _, word := range words[:last] {
		p.pass(word)
	}
	return slices.DeleteFunc(p.candidates(words[last]), func(c candidate) bool { return !strings.HasPrefix(c.word, words[last]) })
}

// joined undoes what bash does to a word with an equals sign: --json=a is three words there.
func joined(words []string) (all []string) {
	for i := 0; i < len(words); i++ {
		if n := len(all); n > 0 && words[i] == "=" && strings.HasPrefix(all[n-1], "--") {
			all[n-1] += "="
			if i++; i < len(words) {
				all[n-1] += words[i]
			}
			continue
		}
		all = append(all, words[i])
	}
	return all
}

// place is a place in a command line: what the words before it leave possible.
type place struct {
	node *kong.Node
	flag *kong.Flag // that the next word is the value of
	args int        // positional arguments so far
	rest bool       // only positional arguments follow
}

// pass moves the place behind a word.
func (p *place) pass(word string) {
	child := slices.IndexFunc(p.node.Children, func(n *kong.Node) bool { return n.Name == word })
	switch {
	case p.flag != nil:
		p.flag = nil
	case p.rest:
	case word == "--":
		p.rest = true
	case strings.HasPrefix(word, "-"):
		if f := p.find(word); f != nil && !f.IsBool() {
			p.flag = f
		}
	case child >= 0:
		p.node = p.node.Children[child]
	default:
		arg := p.argument()
		p.rest = arg != nil && arg.PassthroughMode != kong.PassThroughModeNone
		p.args++
	}
}

// find returns the flag that is the whole word, without a value, or nil.
func (p *place) find(word string) *kong.Flag {
	for _, f := range p.flags() {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func (p *place) flags() []*kong.Flag { return slices.Concat(p.node.AllFlags(true)...) }

// argument returns the positional argument that comes next, or nil.
func (p *place) argument() *kong.Value {
	args := p.node.Positional
	switch n := len(args); {
	case p.args < n:
		return args[p.args]
	case n > 0 && args[n-1].IsCumulative():
		return args[n-1]
	}
	return nil
}

// candidates returns what a word that begins with typed can be here, and more.
func (p *place) candidates(typed string) (all []candidate) {
	flag, _, hasValue := strings.Cut(typed, "=")
	switch {
	case p.flag != nil:
		return values(p.flag.Value, "", typed)
	case !p.rest && strings.HasPrefix(typed, "--") && hasValue:
		if f := p.find(flag); f != nil {
			all = values(f.Value, flag+"=", typed)
		}
	case !p.rest && strings.HasPrefix(typed, "-"):
		for _, f := range p.flags() {
			all = append(all, candidate{"--" + f.Name, summary(f.Help)})
		}
	case !p.rest && len(p.node.Children) > 0:
		return commands(p.node)
	case !p.rest && p.node.Name == "help":
		root := p.node
		for root.Parent != nil {
			root = root.Parent
		}
		return commands(root)
	default:
		if arg := p.argument(); arg != nil {
			all = values(arg, "", typed)
		}
	}
	return all
}

func commands(of *kong.Node) (all []candidate) {
	for _, n := range of.Children {
		if !n.Hidden {
			all = append(all, candidate{n.Name, summary(n.Help)})
		}
	}
	return all
}

// summary returns the first sentence of a help text.
func summary(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	first, _, _ = strings.Cut(first, "; ")
	first, _, _ = strings.Cut(first, ": ")
	return strings.TrimSuffix(first, ".")
}

// values returns the values of a flag or a positional argument, each after the text before it and after the
// earlier values of a list.
func values(v *kong.Value, before, typed string) (all []candidate) {
	if comma := strings.LastIndex(typed, ","); v.Flag != nil && v.IsSlice() && comma >= len(before) {
		before = typed[:comma+1]
	}
	words := []string{}
	if name := cmp.Or(flagName(v), v.Name); known[name] != nil {
		words = known[name]()
	} else if v.Enum != "" {
		words = v.EnumSlice()
	}
	for _, word := range words {
		all = append(all, candidate{before + word, ""})
	}
	return all
}

func flagName(v *kong.Value) string {
	if v.Flag == nil {
		return ""
	}
	return "--" + v.Name
}

// known are the values of flags, and of positional arguments, that are names.
var known = map[string]func() []string{
	"collective": func() []string {
		return slices.Concat(texts(ccl.Collectives()), []string{ccl.CollBarrier.String(), measure.Operators}, measure.OperatorNames())
	},
	"--collective": func() []string { return texts(ccl.Collectives()) },
	"--workload":   workload.Names,
	"--dtype":      func() []string { return texts(ccl.DTypes()) },
	"--op":         func() []string { return texts(ccl.Ops()) },
	"--topology":   func() []string { return texts(topology.Kinds()) },
	"--transport": func() (names []string) {
		for _, p := range transport.Providers() {
			names = append(names, p.Name)
		}
		return names
	},
	"--memory": func() []string { return []string{measure.Private, measure.Alloc} },
	"--algorithm": func() []string {
		cfg, err := config.Find()
		if err != nil {
			return nil
		}
		return append([]string{measure.Auto}, cfg.Entries()...)
	},
}

func texts[T fmt.Stringer](values []T) (all []string) {
	for _, v := range values {
		all = append(all, v.String())
	}
	return all
}
