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

// Fail makes the error about a key at a line and a column, which count from 1; 0 and "" stand
// for the whole file, and column 0 for a whole line.
type Fail func(line, column int, key, message string) error

// Node is a value in the file. The zero Node is invalid.
type Node struct {
	value     *yaml.Node
	file      *file
	Key       string // path of the key, such as "algorithms.ring.params.chunk", "rules[1].bytes"; "" for the whole file
	Line      int    // of the key
	Column    int    // of the value if it stands on the line of its key, else of the key
	keyColumn int
}

// file is what the nodes of a file share.
type file struct {
	fail    Fail
	refused map[*yaml.Node]error // keys and values that no file may contain
}

// Parse parses a file that contains one document, UTF-8 text of at most 64 KiB. Its errors are
// those that leave nothing to read: the text is not YAML, or too large.
//
// Readers reject what a configuration does not need and a reader could overlook: anchors,
// aliases, merge keys, tags, duplicate keys and keys without a value. fail makes all errors,
// also the errors of the Node's methods.
func Parse(data []byte, fail Fail) (Node, error) {
	whole := Node{file: &file{fail, map[*yaml.Node]error{}}}
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
		if tab := firstTab(data, line); tab > 0 {
			whole.Column = tab
			return whole, whole.Errorf("a tab indents the line; YAML wants spaces: replace each tab by two")
		}
		return whole, whole.Errorf("not YAML: %s%s", message, hint(message))
	}

	at := document.Content[0]
	root := Node{value: at, file: whole.file, Line: at.Line, Column: at.Column, keyColumn: at.Column}
	nodes := 0
	if err := root.check(1, &nodes); err != nil {
		return root, err
	}
	return root, root.file.refused[at]
}

// firstTab returns the column of the tab in the indentation of a line, or behind the dash of a
// list, 0 if it has none.
func firstTab(data []byte, line int) int {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return 0
	}
	at := lines[line-1]
	tab := len(at) - len(bytes.TrimLeft(at, " -"))
	if !bytes.HasPrefix(at[tab:], []byte("\t")) {
		return 0
	}
	return tab + 1
}

// hints explain the parser's messages.
var hints = []struct{ message, hint string }{
	{"mapping values are not allowed", `the line is indented more than the one above, a ":" above lacks the space behind it, or a text with ": " lacks its quotes`},
	{"did not find expected key", "the indentation of the line fits no line above it, or text follows a closing quote or bracket"},
	{"did not find expected '-' indicator", "the lines of a list begin with - in the same column"},
	{"did not find expected ',' or", "a comma or a closing bracket is missing"},
	{"did not find expected node content", "a comma or a bracket too many"},
	{"could not find expected ':'", `a key is followed by ": " and its value`},
	{"cannot start any token", "quote a text that begins with @, `, %, > or |"},
	{"did not find expected comment or line break", "quote a text that begins with > or |"},
	{"found unexpected end of stream", "a quote is not closed"},
}

// hint returns what a message of the parser means, in brackets, or "".
func hint(message string) string {
	for _, h := range hints {
		if strings.Contains(message, h.message) {
			return " (" + h.hint + ")"
		}
	}
	return ""
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
	return n.file.fail(n.Line, n.Column, n.Key, fmt.Sprintf(format, args...))
}

// AtKey returns n for an error about its key.
func (n Node) AtKey() Node {
	n.Column = n.keyColumn
	return n
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
	// A block's own line is the next.
	child := Node{value: value, file: n.file, Key: name, Line: key.Line, Column: key.Column, keyColumn: key.Column}
	if value.Line == key.Line {
		child.Column = value.Column
	}
	return child
}

// element returns the i-th element of a list; its key counts from 1.
func (n Node) element(i int) Node {
	value := n.value.Content[i]
	return Node{value: value, file: n.file, Key: fmt.Sprintf("%s[%d]", n.Key, i+1), Line: value.Line, Column: value.Column, keyColumn: value.Column}
}

// check notes, of n and all below it, what no file may contain. It fails if there is too much.
func (n Node) check(depth int, nodes *int) error {
	if *nodes++; *nodes > maxNodes {
		return n.Errorf("the file has more than %d values", maxNodes)
	}
	if message := n.forbidden(depth); message != "" {
		n.refuse("%s", message) // and nothing below it is read
		return nil
	}
	switch n.value.Kind {
	case yaml.SequenceNode:
		for i := range n.value.Content {
			if err := n.element(i).check(depth+1, nodes); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		first := make(map[string]int) // line of each key
		for key, value := range n.pairs() {
			k := n.child(key, key)
			if err := errors.Join(k.check(depth+1, nodes), n.child(key, value).check(depth+1, nodes)); err != nil {
				return err
			}

			line, twice := first[key.Value]
			switch {
			case n.file.refused[key] != nil:
			case key.Tag != "!!str":
				k.refuse("want a word as key, got %s%s", k.What(), listHint(value))
			case twice:
				k.refuse("duplicate key; it stands on line %d already", line)
			default:
				first[key.Value] = key.Line
			}
		}
	}

	return nil
}

// listHint explains a wrong key that has no value: in {a: b, c} the author means c as a value.
func listHint(value *yaml.Node) string {
	if value.Tag != "!!null" {
		return ""
	}
	return "; several values of one key are a list: [a, b]"
}

// forbidden returns why n itself may not be in a file, or "".
func (n Node) forbidden(depth int) string {
	switch {
	case n.value.Anchor != "":
		return fmt.Sprintf("anchors (&%s) and aliases are not supported; write the values out", text.Cut(n.value.Anchor))
	case n.value.Kind == yaml.AliasNode:
		return fmt.Sprintf("aliases (*%s) are not supported; write the values out", text.Cut(n.value.Value))
	case n.value.Style&yaml.TaggedStyle != 0:
		return fmt.Sprintf("tags (%s) are not supported", text.Cut(n.value.Tag))
	// Values that YAML knows and this format does not.
	case n.value.Tag == "!!merge":
		return "merge keys (<<) are not supported; write the values out"
	case n.value.Tag == "!!null":
		return "there is no value; give one, or remove the key"
	case depth > MaxDepth && n.value.Kind != yaml.ScalarNode:
		return fmt.Sprintf("nested deeper than %d levels", MaxDepth)
	}
	return ""
}

func (n Node) refuse(format string, args ...any) {
	n.file.refused[n.value] = n.Errorf(format, args...)
}

// Later returns n, and what no file may contain in it: for a value whose reader is not known yet.
func (n Node) Later() (Node, error) {
	var errs []error
	var visit func(*yaml.Node)
	visit = func(value *yaml.Node) {
		if err := n.file.refused[value]; err != nil {
			errs = append(errs, err)
			return
		}
		for _, child := range value.Content {
			visit(child)
		}
	}

	visit(n.value)
	return n, errors.Join(errs...)
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

// Required are the keys that a mapping must have, and what the error adds if one is missing.
type Required map[string]string

// Read reads a mapping. A key that is not in known is an error, as is a key of required that
// the mapping lacks. The error joins those of all keys.
func (n Node) Read(known Fields, required Required, synonyms text.Synonyms) error {
	names := slices.Sorted(maps.Keys(known))
	var found []string
	errs := []error{n.each(func(v Node, name string, refused error) error {
		read, ok := known[name]
		switch {
		case ok && refused != nil:
			return refused
		case ok:
			return read(v)
		}
		meant := synonyms.Meant(name)
		found = append(found, text.Nearest(meant, names)) // one mistake, not two
		return v.AtKey().Errorf("unknown key%s; known keys: %s%s",
			text.DidYouMean(meant, names), text.List(names), listHint(v.value))
	})}
	for _, key := range slices.Sorted(maps.Keys(required)) {
		if n.IsMapping() && !n.has(key) && !slices.Contains(found, key) {
			errs = append(errs, n.Errorf("%s is missing%s", key, required[key]))
		}
	}
	return errors.Join(errs...)
}

// has reports whether the mapping has the key, with whatever value.
func (n Node) has(name string) bool {
	for key := range n.pairs() {
		if key.Value == name {
			return true
		}
	}
	return false
}

// Each calls read for every value of a mapping, in the order of the file, and joins the errors.
func (n Node) Each(read func(v Node, name string) error) error {
	return n.each(func(v Node, name string, refused error) error {
		if refused != nil {
			return refused
		}
		return read(v, name)
	})
}

// each is Each that also visits values that no file may contain, and why. A key that no file may
// contain is an error already.
func (n Node) each(visit func(v Node, name string, refused error) error) error {
	if !n.IsMapping() {
		return n.Errorf("want a mapping (key: value), got %s", n.What())
	}
	var errs []error
	for key, value := range n.pairs() {
		err := n.file.refused[key]
		if err == nil {
			err = visit(n.child(key, value), key.Value, n.file.refused[value])
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Elements calls read for every element of a list, and joins the errors.
func (n Node) Elements(read func(v Node) error) error {
	if !n.IsList() {
		return n.Errorf("want a list ([a, b], or lines that begin with -), got %s", n.What())
	}
	var errs []error
	for i, value := range n.value.Content {
		err := n.file.refused[value]
		if err == nil {
			err = read(n.element(i))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// List reads a list without duplicates. A single value needs no brackets.
func List[T comparable](n Node, read func(Node) (T, error)) (values []T, err error) {
	if !n.IsList() {
		value, err := read(n)
		if err != nil && n.IsText() && strings.Contains(n.Value(), ",") {
			return nil, n.Errorf("several values are a list: write [%s]", text.Cut(n.Value()))
		}
		return []T{value}, err
	}

	err = n.Elements(func(n Node) error {
		value, err := read(n)
		switch {
		case err != nil:
			return err
		case slices.Contains(values, value):
			return n.Errorf("%s stands in the list twice", n.Value())
		}
		values = append(values, value)
		return nil
	})

	if err == nil && values == nil {
		err = n.Errorf("the list is empty; give a value, or remove the key")
	}
	return values, err
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
