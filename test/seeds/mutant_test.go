package seeds

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A mutant is a defect that is put back into the production code. testdata/mutants.txt explains its
// fields.
type mutant struct {
	name, of, breaks, kind, missed string
	isRace                         bool
	edits                          []edit
}

// An edit replaces statements of a file.
type edit struct {
	file, old, new string
	from, to       int // bytes of the file
}

// readMutants returns the mutants of testdata/mutants.txt, with the places of their edits in the
// files below root.
func readMutants(root string) (all []*mutant, err error) {
	text, err := os.ReadFile(filepath.Join("testdata", "mutants.txt"))
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "mutant" {
			all = append(all, &mutant{name: rest})
		} else if len(all) == 0 || !all[len(all)-1].read(word, rest, line) {
			return nil, fmt.Errorf("line %d of mutants.txt: %q", i+1, line)
		}
	}

	for _, m := range all {
		for i := range m.edits {
			if err := m.edits[i].find(root); err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.name, err)
			}
		}
	}
	return all, nil
}

// read reads a line of a mutant's description.
func (m *mutant) read(word, rest, line string) (ok bool) {
	last := func() *edit { return &m.edits[len(m.edits)-1] }
	switch {
	case word == "of":
		m.of = rest
	case word == "breaks":
		m.breaks = rest
	case word == "kind":
		m.kind = rest
	case word == "missed":
		m.missed = rest

	case line == "race":
		m.isRace = true
	case word == "in":
		m.edits = append(m.edits, edit{file: rest})
	case len(m.edits) == 0:
		return false

	case line[0] == '-':
		last().old += line[1:] + "\n"
	case line[0] == '+':
		last().new += line[1:] + "\n"
	default:
		return false
	}
	return true
}

// find finds the one place of the edit.
func (e *edit) find(root string) error {
	text, err := os.ReadFile(filepath.Join(root, e.file))
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), "\n"+e.old); n != 1 || e.old == "" {
		return fmt.Errorf("%s has these lines %d times, not once:\n%s", e.file, n, e.old)
	}
	e.from = strings.Index(string(text), "\n"+e.old) + 1
	e.to = e.from + len(e.old)
	return nil
}

// overlaps reports whether two mutants change the same statements.
func (m *mutant) overlaps(other *mutant) bool {
	for _, a := range m.edits {
		if slices.ContainsFunc(other.edits, func(b edit) bool {
			return a.file == b.file && a.from < b.to && b.from < a.to
		}) {
			return true
		}
	}
	return false
}

// batches divides mutants into sets that one program can have, of which one is switched on.
func batches(all []*mutant) (sets [][]*mutant) {
	for _, m := range all {
		i := slices.IndexFunc(sets, func(set []*mutant) bool {
			return set[0].isRace == m.isRace && !slices.ContainsFunc(set, m.overlaps)
		})
		if i < 0 {
			i, sets = len(sets), append(sets, nil)
		}
		sets[i] = append(sets[i], m)
	}
	return sets
}

// compose returns the files that the mutants of a set change, by name. Each statement that one
// changes is there twice, and interleave.Mutant chooses.
func compose(root string, set []*mutant) (files map[string]string, err error) {
	type change struct {
		edit
		by string
	}
	changes := map[string][]change{}
	for _, m := range set {
		for _, e := range m.edits {
			changes[e.file] = append(changes[e.file], change{e, m.name})
		}
	}

	files = map[string]string{}
	for name, of := range changes {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		text := string(content)
		slices.SortFunc(of, func(a, b change) int { return b.from - a.from })

		for _, c := range of {
			line := strings.Count(text[:c.from], "\n") + 1
			both := fmt.Sprintf("if interleave.Mutant == %q {\n//line :%d:1\n%s} else {\n//line :%[2]d:1\n%[4]s}\n//line :%d:1\n",
				c.by, line, c.new, c.old, line+strings.Count(c.old, "\n"))
			text = text[:c.from] + both + text[c.to:]
		}
		if !strings.Contains(text, `goccl/internal/interleave"`) {
			clause := text[strings.Index("\n"+text, "\npackage "):]
			clause, _, _ = strings.Cut(clause, "\n")
			text = strings.Replace(text, clause+"\n", clause+"; import \"github.com/goccl/goccl/internal/interleave\"\n", 1)
		}
		files[name] = text
	}
	return files, nil
}

// Every mutant still changes the statements that it is about.
func TestMutantsApply(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := readMutants(root)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range all {
		if names[m.name] || m.of == "" || m.breaks == "" || m.kind == "" || len(m.edits) == 0 {
			t.Errorf("mutant %s is there twice or lacks a field", m.name)
		}
		names[m.name] = true
	}

	for _, set := range batches(all) {
		files, err := compose(root, set)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
				t.Error(err)
			}
		}
	}
}
