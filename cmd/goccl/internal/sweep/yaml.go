package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/goccl/goccl/ccl/config"
)

// node is a value of the file with the path of its key.
type node struct {
	*yaml.Node
	file, key string
}

// parseYAML returns the file's mapping.
func parseYAML(file, text string) (node, error) {
	root := node{&yaml.Node{}, file, ""}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	var document, further yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return root, root.errorf("the file is empty; it has to begin with version: 1")
	case err != nil:
		return root, root.errorf("not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if decoder.Decode(&further) == nil {
		root.Line = further.Line
		return root, root.errorf("a second document begins here; the file has to be one")
	}
	root.Node = document.Content[0]
	if !root.isMapping() {
		return root, root.errorf("want keys with values, such as version: 1")
	}
	return root, nil
}

func (n node) errorf(format string, args ...any) error {
	return &config.Error{File: n.file, Line: n.Line, Key: n.key, Message: fmt.Sprintf(format, args...)}
}

func (n node) isMapping() bool { return n.Kind == yaml.MappingNode }

// read reads the values of a mapping. Unknown, duplicate and missing required keys are
// errors.
func (n node) read(keys map[string]func(node) error, required ...string) error {
	known := slices.Sorted(maps.Keys(keys))
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], node{n.Content[i+1], n.file, n.key}
		value.key = strings.TrimPrefix(n.key+"."+key.Value, ".")
		read := keys[key.Value]
		at := node{key, n.file, value.key}
		switch line, twice := seen[key.Value]; {
		case read == nil:
			return at.errorf("unknown key%s; known keys: %s", didYouMean(key.Value, known), strings.Join(known, ", "))
		case twice:
			return at.errorf("duplicate key; it stands on line %d already", line)
		}
		seen[key.Value] = key.Line
		if err := read(value); err != nil {
			return err
		}
	}
	for _, key := range required {
		if seen[key] == 0 {
			return n.errorf("%s is missing", strings.TrimPrefix(n.key+"."+key, "."))
		}
	}
	return nil
}

// scalar returns the text of a single value.
func (n node) scalar() (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return "", n.errorf("want a single plain value")
	}
	return n.Value, nil
}

// one returns a reader of a single value.
func one[T any](into *T, parse func(string) (T, error)) func(node) error {
	return func(n node) error {
		text, err := n.scalar()
		if err != nil {
			return err
		}
		if *into, err = parse(text); err != nil {
			return n.errorf("%v", err)
		}
		return nil
	}
}

// some returns a reader of a list; a single value needs no brackets.
func some[T comparable](into *[]T, parse func(string) (T, error)) func(node) error {
	return func(n node) error {
		elements := []*yaml.Node{n.Node}
		if n.Kind == yaml.SequenceNode {
			elements = n.Content
		}
		if len(elements) == 0 {
			return n.errorf("the list is empty")
		}
		*into = nil
		for _, element := range elements {
			var value T
			e := node{element, n.file, n.key}
			if err := one(&value, parse)(e); err != nil {
				return err
			}
			if slices.Contains(*into, value) {
				return e.errorf("%s stands in the list twice", element.Value)
			}
			*into = append(*into, value)
		}
		return nil
	}
}

// didYouMean returns " (did you mean X?)" for the name that is nearest to a wrong
// one, or nothing if more than a third of it would have to change.
func didYouMean(wrong string, names []string) string {
	nearest, least := "", 2+len(wrong)/3
	for _, name := range names {
		if d := editDistance(wrong, name); d < least {
			nearest, least = name, d
		}
	}
	if nearest == "" {
		return ""
	}
	return " (did you mean " + nearest + "?)"
}

// editDistance returns how many bytes have to be inserted, deleted or replaced to
// make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // of the part of a so far to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
