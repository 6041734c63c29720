package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/goccl/goccl/internal/text"
)

// What a configuration may have of each is far more than any needs, and bounds
// the time and memory that a hostile one can cost.
const (
	maxConfigBytes = 64 << 10
	maxConfigDepth = 8 // mappings and lists inside each other
	maxConfigNodes = 4096
	maxConfigRules = 256
)

// parseYAML parses the text of a configuration and refuses what a configuration
// has no use for and a reader could overlook: anchors, aliases, merge keys, tags,
// duplicate keys, keys without a value, and further documents.
func parseYAML(file string, data []byte) (node, error) {
	whole := node{file: file}
	if len(data) > maxConfigBytes {
		return whole, whole.errorf("the file is longer than %d bytes", maxConfigBytes)
	}
	for line := range bytes.Lines(data) {
		whole.line++
		if !utf8.Valid(line) {
			return whole, whole.errorf("not UTF-8 text")
		}
	}
	whole.line = 0
	input := &lineReader{rest: bytes.TrimPrefix(data, []byte("\ufeff"))}
	decoder := yaml.NewDecoder(input)
	var document, further yaml.Node
	err := guarded(decoder.Decode, &document)
	if errors.Is(err, io.EOF) || err == nil && document.Content[0].Tag == "!!null" {
		return whole, whole.errorf("the file is empty; it has to begin with version: 1")
	}
	if err == nil {
		if err = guarded(decoder.Decode, &further); err == nil {
			whole.line = further.Line
			return whole, whole.errorf("a second document begins here; the file has to be one")
		}
	}
	if !errors.Is(err, io.EOF) {
		message, line := syntaxError(err, input.lines)
		whole.line = line
		return whole, whole.errorf("not YAML: %s", message)
	}
	root := node{Node: document.Content[0], file: file, line: document.Content[0].Line}
	nodes := 0
	return root, root.check(1, &nodes)
}

// guarded makes an error of a panic in the parser, which is how some of its
// checks of itself end.
func guarded(decode func(any) error, into any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	return decode(into)
}

// lineReader hands out at most one line at a time and counts them, so that the
// count tells how far the parser has read.
type lineReader struct {
	rest  []byte
	lines int
	mid   bool // in the middle of a line
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	if !r.mid {
		r.lines++
	}
	end := bytes.IndexByte(r.rest, '\n') + 1
	if end == 0 {
		end = len(r.rest)
	}
	n := copy(p, r.rest[:end])
	r.rest = r.rest[n:]
	r.mid = n < end
	return n, nil
}

// syntaxError returns what the parser says and on which line the mistake is. The
// parser's own line is right for most of what its scanner finds. For what its
// grammar finds it is where the enclosing mapping begins, or missing, and for tabs
// the line before; there the line that was read last is right.
func syntaxError(err error, lastRead int) (message string, line int) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, found := strings.CutPrefix(message, "line "); found {
		number, text, _ := strings.Cut(rest, ": ")
		line, _ = strconv.Atoi(number)
		message = text
	}
	if line == 0 || strings.HasPrefix(message, "did not find expected") || strings.HasPrefix(message, "found a tab") {
		line = lastRead
	}
	return text.Cut(message), line
}

// node is a place in the file: what stands there, and the path of its key.
type node struct {
	*yaml.Node
	file string
	key  string // such as "algorithms.ring.params.chunk", "rules[1].bytes"; "" for the whole
	line int
}

// errorf returns an error about n.
func (n node) errorf(format string, args ...any) error {
	return &Error{File: n.file, Line: n.line, Key: n.key, Message: fmt.Sprintf(format, args...)}
}

// child returns the value of a key of n.
func (n node) child(key, value *yaml.Node) node {
	name := text.Cut(key.Value)
	if !text.IsName(name) {
		name = text.Quote(name)
	}
	if n.key != "" {
		name = n.key + "." + name
	}
	return node{Node: value, file: n.file, key: name, line: key.Line} // a block's own line is the next
}

// element returns the i-th element of a list, counted from 1 in its key.
func (n node) element(i int) node {
	value := n.Content[i]
	return node{Node: value, file: n.file, key: fmt.Sprintf("%s[%d]", n.key, i+1), line: value.Line}
}

// check refuses, in n and all below it, what no configuration may contain.
func (n node) check(depth int, nodes *int) error {
	*nodes++
	switch {
	case *nodes > maxConfigNodes:
		return n.errorf("the file has more than %d values", maxConfigNodes)
	case n.Anchor != "": // which stands before all of its aliases
		return n.errorf("anchors (&%s) and aliases are not supported; write the values out", text.Cut(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		return n.errorf("tags (%s) are not supported", text.Cut(n.Tag))
	case n.Tag == "!!merge":
		return n.errorf("merge keys (<<) are not supported; write the values out")
	case n.Tag == "!!null":
		return n.errorf("there is no value; give one, or remove the key")
	case n.Kind == yaml.ScalarNode:
		return nil
	case depth > maxConfigDepth:
		return n.errorf("nested deeper than %d levels", maxConfigDepth)
	case n.Kind == yaml.SequenceNode:
		for i := range n.Content {
			if err := n.element(i).check(depth+1, nodes); err != nil {
				return err
			}
		}
		return nil
	}
	first := make(map[string]int) // line of each key
	for key, value := range n.pairs() {
		k := n.child(key, key)
		if err := k.check(depth+1, nodes); err != nil {
			return err
		}
		if key.Tag != "!!str" {
			return k.errorf("want a word as key, got %s", k.what())
		}
		if line, twice := first[key.Value]; twice {
			return k.errorf("duplicate key; it stands on line %d already", line)
		}
		first[key.Value] = key.Line
		if err := n.child(key, value).check(depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

// pairs returns the keys and values of a mapping in the order of the file.
func (n node) pairs() func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// what describes n for a message.
func (n node) what() string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!str":
		return "the text " + text.Quote(n.Value)
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "the number " + text.Cut(n.Value)
	}
	return n.Value // true, false, or a date
}

// Readers of collections.

// fields are the keys that a mapping may have, and their readers.
type fields map[string]func(node) error

// read reads a mapping that may have some of the fields and no others.
func (n node) read(known fields) error {
	return n.each(func(v node, name string) error {
		read, ok := known[name]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			return v.errorf("unknown key%s; known keys: %s", text.DidYouMean(name, names), text.List(names))
		}
		return read(v)
	})
}

// each calls read for all values of a mapping.
func (n node) each(read func(v node, name string) error) error {
	if n.Kind != yaml.MappingNode {
		return n.errorf("want a mapping (key: value), got %s", n.what())
	}
	for key, value := range n.pairs() {
		if err := read(n.child(key, value), key.Value); err != nil {
			return err
		}
	}
	return nil
}

// elements calls read for all elements of a list.
func (n node) elements(read func(v node) error) error {
	if n.Kind != yaml.SequenceNode {
		return n.errorf("want a list, got %s", n.what())
	}
	for i := range n.Content {
		if err := read(n.element(i)); err != nil {
			return err
		}
	}
	return nil
}

// into returns a reader that stores what parse reads, and the line.
func into[T any](g *given[T], parse func(node) (T, error)) func(node) error {
	return func(n node) (err error) {
		g.value, err = parse(n)
		g.line = n.line
		return err
	}
}

// Readers of scalars.

func (n node) isText() bool   { return n.Kind == yaml.ScalarNode && n.Tag == "!!str" }
func (n node) isNumber() bool { return n.Tag == "!!int" || n.Tag == "!!float" }

func (n node) text() (string, error) {
	if !n.isText() {
		return "", n.errorf("want a text, got %s; quotes make it one", n.what())
	}
	return n.Value, nil
}

func (n node) boolean() (bool, error) {
	if n.Tag != "!!bool" || n.Value != "true" && n.Value != "false" {
		return false, n.errorf("want true or false, got %s", n.what())
	}
	return n.Value == "true", nil
}

// whole reads a plain decimal number; 010, 0x4, 4.0 and "4" are none.
func (n node) whole(least, most int) (int, error) {
	v, err := text.Whole(n.Value)
	switch {
	case !n.isNumber() || errors.Is(err, strconv.ErrSyntax):
		return 0, n.errorf("want a whole number such as 4, in decimal digits without quotes; got %s", n.what())
	case err != nil || v < int64(least) || v > int64(most):
		return 0, n.errorf("%s is out of range: from %d to %d are allowed", n.what(), least, most)
	}
	return int(v), nil
}

// size reads a number of ranks: of a group, or along one side of a grid.
func (n node) size() (int, error) { return n.whole(1, MaxRanks) }

func (n node) duration() (time.Duration, error) {
	d, err := time.ParseDuration(n.Value)
	if !n.isText() || err != nil {
		return 0, n.errorf("want a duration with its unit, such as 60s or 1m30s; got %s", n.what())
	}
	return d, nil
}

// scalar reads a text or a number by its letters: 64KiB needs no quotes, nor 4096.
func scalar[T any](n node, parse func(string) (T, error)) (v T, err error) {
	if !n.isText() && !n.isNumber() {
		return v, n.errorf("want a text or a number, got %s", n.what())
	}
	if v, err = parse(n.Value); err != nil {
		return v, n.errorf("%v", err)
	}
	return v, nil
}

// oneOf returns a reader of the name of one of the values.
func oneOf[T any](what string, values []T) func(node) (T, error) {
	return func(n node) (v T, err error) {
		name, err := n.text()
		if err != nil {
			return v, err
		}
		if v, err = text.Named(what, name, values); err != nil {
			return v, n.errorf("%v", err)
		}
		return v, nil
	}
}
