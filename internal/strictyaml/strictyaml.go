package strictyaml

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

// Limits are far above what any file needs; they bound the time and memory that a hostile
// file can cost.
const (
	MaxBytes = 64 << 10
	MaxDepth = 8 // nested mappings and lists
	maxNodes = 4096
)

// Fail makes the error about a key at a line; 0 and "" stand for the whole file.
type Fail func(line int, key, message string) error

// Node is a value in the file. The zero Node is invalid.
type Node struct {
	value *yaml.Node
	fail  Fail
	Key   string // path of the key, such as "algorithms.ring.params.chunk", "rules[1].bytes"; "" for the whole file
	Line  int    // of the key
}

// Parse parses a file that contains one document, UTF-8 text of at most 64 KiB. It rejects
// what a configuration does not need and a reader could overlook: anchors, aliases, merge
// keys, tags, duplicate keys, keys without a value, and further documents. fail makes all
// errors, also the errors of the Node's methods.
func Parse(data []byte, fail Fail) (Node, error) {
	whole := Node{fail: fail}
	if len(data) > MaxBytes {
		return whole, whole.Errorf("the file is longer than %d bytes", MaxBytes)
	}
	for line := range bytes.Lines(data) {
		whole.Line++
		if !utf8.Valid(line) {
			return whole, whole.Errorf("not UTF-8 text")
		}
	}
	whole.Line = 0
	input := &lineReader{rest: bytes.TrimPrefix(data, []byte("\ufeff"))}
	decoder := yaml.NewDecoder(input)
	var document, further yaml.Node
	err := guarded(decoder.Decode, &document)
	if errors.Is(err, io.EOF) || err == nil && document.Content[0].Tag == "!!null" {
		return whole, whole.Errorf("the file is empty; it has to begin with version: 1")
	}
	if err == nil {
		if err = guarded(decoder.Decode, &further); err == nil {
			whole.Line = further.Line
			return whole, whole.Errorf("a second document begins here; the file has to be one")
		}
	}
	if !errors.Is(err, io.EOF) {
		message, line := syntaxError(err, input.lines)
		whole.Line = line
		if strings.Contains(message, "cannot start any token") && indentedByTab(data, line) {
			message = "a tab indents the line; indentation must be spaces"
		}
		return whole, whole.Errorf("not YAML: %s", message)
	}
	root := Node{value: document.Content[0], fail: fail, Line: document.Content[0].Line}
	nodes := 0
	return root, root.check(1, &nodes)
}

// indentedByTab reports whether a tab is in the indentation of a line.
func indentedByTab(data []byte, line int) bool {
	lines := bytes.Split(data, []byte("\n"))
	return line > 0 && line <= len(lines) && bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t"))
}

// guarded turns a panic of the parser, by which some of its internal checks end, into an
// error.
func guarded(decode func(any) error, into any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	return decode(into)
}

// lineReader returns at most one line per Read and counts the lines, so that the count
// shows how far the parser has read.
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

// syntaxError returns the parser's message and the line of the mistake. The parser's own
// line is right for most mistakes that its scanner finds. For mistakes of grammar it is the
// line where the enclosing mapping begins, or missing, and for tabs the line before; in
// these cases the line that was read last is right.
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

// Errorf returns an error about n.
func (n Node) Errorf(format string, args ...any) error {
	return n.fail(n.Line, n.Key, fmt.Sprintf(format, args...))
}

// child returns the value of a key of n.
func (n Node) child(key, value *yaml.Node) Node {
	name := text.Cut(key.Value)
	if !text.IsName(name) {
		name = text.Quote(name)
	}
	if n.Key != "" {
		name = n.Key + "." + name
	}
	return Node{value: value, fail: n.fail, Key: name, Line: key.Line} // a block's own line is the next
}

// element returns the i-th element of a list; its key counts from 1.
func (n Node) element(i int) Node {
	value := n.value.Content[i]
	return Node{value: value, fail: n.fail, Key: fmt.Sprintf("%s[%d]", n.Key, i+1), Line: value.Line}
}

// check rejects, in n and all below it, what no file may contain.
func (n Node) check(depth int, nodes *int) error {
	*nodes++
	switch {
	case *nodes > maxNodes:
		return n.Errorf("the file has more than %d values", maxNodes)
	case n.value.Anchor != "": // an anchor precedes its aliases
		return n.Errorf("anchors (&%s) and aliases are not supported; write the values out", text.Cut(n.value.Anchor))
	case n.value.Style&yaml.TaggedStyle != 0:
		return n.Errorf("tags (%s) are not supported", text.Cut(n.value.Tag))
	case n.value.Tag == "!!merge":
		return n.Errorf("merge keys (<<) are not supported; write the values out")
	case n.value.Tag == "!!null":
		return n.Errorf("there is no value; give one, or remove the key")
	case n.value.Kind == yaml.ScalarNode:
		return nil
	case depth > MaxDepth:
		return n.Errorf("nested deeper than %d levels", MaxDepth)
	case n.value.Kind == yaml.SequenceNode:
		for i := range n.value.Content {
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
			return k.Errorf("want a word as key, got %s", k.What())
		}
		if line, twice := first[key.Value]; twice {
			return k.Errorf("duplicate key; it stands on line %d already", line)
		}
		first[key.Value] = key.Line
		if err := n.child(key, value).check(depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

// pairs returns the keys and values of a mapping in the order of the file.
func (n Node) pairs() func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.value.Content); i += 2 {
			if !yield(n.value.Content[i], n.value.Content[i+1]) {
				return
			}
		}
	}
}

// What describes n for a message.
func (n Node) What() string {
	switch {
	case n.IsMapping():
		return "a mapping"
	case n.IsList():
		return "a list"
	case n.IsText():
		return "the text " + text.Quote(n.Value())
	case n.IsNumber():
		return "the number " + text.Cut(n.Value())
	}
	return n.Value() // true, false, or a date
}

// IsMapping reports whether n is a mapping.
func (n Node) IsMapping() bool { return n.value.Kind == yaml.MappingNode }

// IsList reports whether n is a list.
func (n Node) IsList() bool { return n.value.Kind == yaml.SequenceNode }

// IsText reports whether n is a text: a scalar that is in quotes, or nothing else.
func (n Node) IsText() bool { return n.value.Kind == yaml.ScalarNode && n.value.Tag == "!!str" }

// IsNumber reports whether n is a number.
func (n Node) IsNumber() bool { return n.value.Tag == "!!int" || n.value.Tag == "!!float" }

// Value returns the text of a scalar as the file has it, without quotes.
func (n Node) Value() string { return n.value.Value }

// Fields are the keys that a mapping may have, and their readers.
type Fields map[string]func(Node) error

// Read reads a mapping. A key that is not in known is an error, as is a key of required that
// the mapping lacks.
func (n Node) Read(known Fields, required ...string) error {
	var found []string
	err := n.Each(func(v Node, name string) error {
		read, ok := known[name]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			return v.Errorf("unknown key%s; known keys: %s", text.DidYouMean(name, names), text.List(names))
		}
		found = append(found, name)
		return read(v)
	})
	for _, key := range required {
		if err == nil && !slices.Contains(found, key) {
			return n.Errorf("%s is missing", key)
		}
	}
	return err
}

// Each calls read for every value of a mapping, in the order of the file.
func (n Node) Each(read func(v Node, name string) error) error {
	if !n.IsMapping() {
		return n.Errorf("want a mapping (key: value), got %s", n.What())
	}
	for key, value := range n.pairs() {
		if err := read(n.child(key, value), key.Value); err != nil {
			return err
		}
	}
	return nil
}

// Elements calls read for every element of a list.
func (n Node) Elements(read func(v Node) error) error {
	if !n.IsList() {
		return n.Errorf("want a list, got %s", n.What())
	}
	for i := range n.value.Content {
		if err := read(n.element(i)); err != nil {
			return err
		}
	}
	return nil
}

// Version reads the version of the file format, which is 1.
func (n Node) Version() (int, error) {
	if n.What() != "the number 1" {
		return 0, n.Errorf("%s is not a known version; it has to be 1", n.What())
	}
	return 1, nil
}

// Text reads a text.
func (n Node) Text() (string, error) {
	if !n.IsText() {
		return "", n.Errorf("want a text, got %s; quotes make it one", n.What())
	}
	return n.Value(), nil
}

// Bool reads true or false.
func (n Node) Bool() (bool, error) {
	if n.value.Tag != "!!bool" || n.Value() != "true" && n.Value() != "false" {
		return false, n.Errorf("want true or false, got %s", n.What())
	}
	return n.Value() == "true", nil
}

// Whole reads a plain decimal number; 010, 0x4, 4.0 and "4" are rejected.
func (n Node) Whole(least, most int) (int, error) {
	v, err := text.Whole(n.Value())
	switch {
	case !n.IsNumber() || errors.Is(err, strconv.ErrSyntax):
		return 0, n.Errorf("want a whole number such as 4, in decimal digits without quotes; got %s", n.What())
	case err != nil || v < int64(least) || v > int64(most):
		return 0, n.Errorf("%s is out of range: from %d to %d are allowed", n.What(), least, most)
	}
	return int(v), nil
}

// Duration reads a duration.
func (n Node) Duration() (time.Duration, error) {
	d, err := time.ParseDuration(n.Value())
	if !n.IsText() || err != nil {
		return 0, n.Errorf("want a duration with its unit, such as 60s or 1m30s; got %s", n.What())
	}
	return d, nil
}

// Scalar reads a text or a number by its letters, so that neither 64KiB nor 4096 needs quotes.
func Scalar[T any](n Node, parse func(string) (T, error)) (v T, err error) {
	if !n.IsText() && !n.IsNumber() {
		return v, n.Errorf("want a text or a number, got %s", n.What())
	}
	if v, err = parse(n.Value()); err != nil {
		return v, n.Errorf("%v", err)
	}
	return v, nil
}
