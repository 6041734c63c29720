package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/strictyaml"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
)

// maxRules bounds the time that a hostile file can cost.
const maxRules = 256

// Parse parses the text of a ccl.yaml, UTF-8 of at most 64 KiB.
//
// Messages call the file by the name file. Unknown or unexpected content is an *Error with its
// line, its column and, for a misspelt name, the nearest valid one; several mistakes are Errors.
// Text that is not YAML is one mistake, because nothing behind it can be read.
func Parse(file string, data []byte) (*Config, error) {
	c, err := parsePartly(file, data)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// parsePartly is Parse. With an error it returns what could be read, and nil if that is nothing.
func parsePartly(file string, data []byte) (*Config, error) {
	c := defaults(file)
	root, err := strictyaml.Parse(data, func(line, column int, key, message string) error {
		return &Error{File: file, Line: line, Column: column, Key: key, Message: message}
	})
	if err != nil {
		return nil, err
	}
	return c, inOrder(c.read(root), c.check())
}

// into returns a reader that stores what parse returns, and its place. A mistake leaves g unset.
func into[T any](g *given[T], parse func(strictyaml.Node) (T, error)) func(strictyaml.Node) error {
	return func(n strictyaml.Node) error {
		value, err := parse(n)
		if err == nil {
			*g = given[T]{value, originOf(n)}
		}
		return err
	}
}

// read fills c from the file.
func (c *Config) read(root strictyaml.Node) error {
	var version given[int]
	return root.Read(strictyaml.Fields{
		"version": into(&version, strictyaml.Node.Version),
		"defaults": func(n strictyaml.Node) error {
			return n.Read(strictyaml.Fields{
				"algorithm":  into(&c.algorithm, strictyaml.Node.Text),
				"transport":  into(&c.transport, readTransport),
				"timeout":    into(&c.timeout, readTimeout),
				"world_size": into(&c.worldSize, readSize),
				"debug":      into(&c.debug, strictyaml.Node.Bool),
			}, nil, text.Synonyms{"backend": "transport", "ranks": "world_size", "nranks": "world_size", "size": "world_size", "module": "algorithm"})
		},
		"algorithms": func(n strictyaml.Node) error { return n.Each(c.readEntry) },
		"topology":   func(n strictyaml.Node) error { return c.topology.read(n) },
		"rules":      c.readRules,
	}, strictyaml.Required{"version": "; the file has to begin with version: 1"}, text.Synonyms{"entries": "algorithms", "modules": "algorithms"})
}

func (c *Config) readEntry(n strictyaml.Node, name string) error {
	switch {
	case !text.IsName(name):
		return n.AtKey().Errorf("the name of an entry has only letters a to z, digits and underscores")
	case name == auto:
		return n.AtKey().Errorf("auto cannot be the name of an entry: it means that the rules choose")
	}
	e := &entry{origin: originOf(n), name: name}
	c.entries = append(c.entries, e) // with a mistake too: rules may name it
	if n.IsText() {
		return n.Errorf("want a mapping such as {module: %s}, got %s", text.Cut(n.Value()), n.What())
	}
	return n.Read(strictyaml.Fields{
		"module":     into(&e.module, strictyaml.Node.Text),
		"topology":   into(&e.topology, readKind),
		"world_size": into(&e.worldSize, readSize),
		// The parameters' keys are the algorithm's, which Resolve finds.
		"params": into(&e.params, strictyaml.Node.Later),
	}, strictyaml.Required{"module": ": the algorithm that the entry is for, such as module: ring"},
		text.Synonyms{"algorithm": "module", "kernel": "module", "type": "module", "name": "module",
			"options": "params", "args": "params", "ranks": "world_size", "nranks": "world_size", "size": "world_size"})
}

func (t *arrangement) read(n strictyaml.Node) error {
	t.origin = originOf(n)
	return n.Read(strictyaml.Fields{
		"kind":  into(&t.kind, readKind),
		"count": into(&t.count, readCount),
		"w":     into(&t.w, readSize),
		"h":     into(&t.h, readSize),
	}, nil, text.Synonyms{"type": "kind", "name": "kind", "size": "count", "ranks": "count", "world_size": "count", "n": "count",
		"width": "w", "columns": "w", "cols": "w", "height": "h", "rows": "h"})
}

// ruleSynonyms are what people call the fields of a rule.
var ruleSynonyms = text.Synonyms{
	"size": "bytes", "sizes": "bytes", "nbytes": "bytes", "message_size": "bytes", "msg_size": "bytes", "length": "bytes", "count": "bytes",
	"coll": "collective", "operation": "collective", "function": "collective",
	"type": "dtype", "datatype": "dtype", "data_type": "dtype",
	"n": "ranks", "np": "ranks", "nranks": "ranks", "world_size": "ranks", "comm_size": "ranks",
	"nnodes": "nodes", "num_nodes": "nodes", "hosts": "nodes", "machines": "nodes",
	"reduce_op": "op", "redop": "op",
	"entry": "algorithm", "module": "algorithm", "kernel": "algorithm", "use": "algorithm",
}

func (c *Config) readRules(n strictyaml.Node) error {
	ranges, full := 0, false
	return n.Elements(func(n strictyaml.Node) error {
		r, err := readRule(n)
		if full {
			return err
		}

		ranges += max(1, len(r.bytes.value)) * max(1, len(r.ranks.value)) * max(1, len(r.nodes.value))
		if full = ranges > maxRules; full {
			return n.Errorf("the file has more than %d rules (each range in a list counts)", maxRules)
		}
		c.rules = append(c.rules, r)
		return err
	})
}

func readRule(n strictyaml.Node) (rule, error) {
	r := rule{origin: originOf(n)}
	err := n.Read(strictyaml.Fields{
		"collective": into(&r.collective, readNames(readCollective)),
		"bytes":      into(&r.bytes, readSpans(0, parseByteSize)),
		"ranks":      into(&r.ranks, readSpans(1, parseRanks)),
		"nodes":      into(&r.nodes, readSpans(1, parseNodes)),
		"dtype":      into(&r.dtype, readNames(readName[ccl.DType])),
		"op":         into(&r.op, readNames(readName[ccl.Op])),
		"algorithm":  into(&r.algorithm, strictyaml.Node.Text),
	}, strictyaml.Required{"algorithm": ": the entry that the rule chooses"}, ruleSynonyms)
	if r.op.isSet() {
		for _, coll := range r.collective.value {
			if !coll.Traits().Reduces {
				err = errors.Join(err, n.Errorf("%s takes no op: the rule would never match it", coll))
			}
		}
	}
	return r, err
}

// check finds mistakes that only the whole file shows.
func (c *Config) check() error {
	var errs []error
	if name := c.algorithm.value; name != auto && c.entry(name) == nil {
		errs = append(errs, c.errorAt(c.algorithm.origin, "defaults.algorithm", "%s", c.unknownEntry(name)))
	}

	for i, r := range c.rules {
		if name := r.algorithm.value; r.algorithm.isSet() && c.entry(name) == nil {
			errs = append(errs, c.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"), "%s", c.unknownEntry(name)))
		}
	}
	t := &c.topology
	count := t.count.value
	if size := t.w.value * t.h.value; size > MaxRanks {
		errs = append(errs, c.errorAt(t.origin, "topology", "w=%d and h=%d make %d ranks: at most %d are allowed", t.w.value, t.h.value, size, MaxRanks))
	} else if count != 0 { // else Resolve knows the number of ranks
		_, err := c.arrange(count, "")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// arrange returns the file's topology for count ranks. The error message ends in why, which
// explains that number.
func (c *Config) arrange(count int, why string) (*topology.Topology, error) {
	t, err := topology.New(c.topology.kind.value, count, c.topology.w.value, c.topology.h.value)
	if err != nil {
		return nil, &Error{
			File:    c.file,
			Line:    c.topology.line,
			Column:  c.topology.column,
			Key:     "topology",
			Message: text.Reason(err) + why,
			Err:     err,
		}
	}
	return t, nil
}

// ruleKey returns the path of a field of c.rules[i]; the first rule is number 1.
func ruleKey(i int, field string) string { return fmt.Sprintf("rules[%d].%s", i+1, field) }

// readSize reads a number of ranks: of a group, or along one side of a grid.
func readSize(n strictyaml.Node) (int, error) { return n.Whole(1, MaxRanks) }

const wantTimeout = "want a duration with its unit, such as 500ms, 60s or 5m, or none"

func readTimeout(n strictyaml.Node) (time.Duration, error) {
	if !n.IsText() {
		return 0, n.Errorf("%s; got %s", wantTimeout, n.What())
	}
	return strictyaml.Scalar(n, parseTimeout)
}

// parseTimeout parses a timeout; it returns 0 for none.
func parseTimeout(s string) (time.Duration, error) {
	if s == "none" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%s; got the text %s", wantTimeout, text.Quote(s))
	}
	if d <= 0 {
		return 0, fmt.Errorf("%s is not more than zero; write none to wait for ever", text.Quote(s))
	}
	return d, nil
}

func readKind(n strictyaml.Node) (topology.Kind, error) {
	name, err := n.Text()
	if err != nil {
		return 0, err
	}
	k, err := topology.ParseKind(name)
	if err != nil {
		return 0, n.Errorf("%s", text.Reason(err))
	}
	return k, nil
}

// readCount reads the number of ranks of a topology; it returns 0 for auto.
func readCount(n strictyaml.Node) (int, error) {
	switch {
	case !n.IsText():
		return readSize(n)
	case n.Value() != auto:
		return 0, n.Errorf("want auto, or a whole number without quotes; got %s", n.What())
	}
	return 0, nil
}

// readSpans returns a reader of a range, or of a list of ranges that do not overlap.
func readSpans[T int | ccl.ByteSize](least T, parse func(string) (T, error)) func(strictyaml.Node) ([]span[T], error) {
	readSpan := func(n strictyaml.Node) (span[T], error) {
		return strictyaml.Scalar(n, func(s string) (span[T], error) { return parseSpan(s, least, parse) })
	}

	return func(n strictyaml.Node) ([]span[T], error) {
		all, err := strictyaml.List(n, readSpan)
		slices.SortFunc(all, func(a, b span[T]) int { return cmp.Compare(a.min, b.min) })
		for i := 1; err == nil && i < len(all); i++ {
			if before := all[i-1]; before.contains(all[i].min) {
				err = n.Errorf("the ranges %v and %v overlap", before, all[i])
			}
		}
		return all, err
	}
}

// readNames returns a reader of a value, or of a list of values.
func readNames[T cmp.Ordered](read func(strictyaml.Node) (T, error)) func(strictyaml.Node) ([]T, error) {
	return func(n strictyaml.Node) ([]T, error) {
		all, err := strictyaml.List(n, read)
		slices.Sort(all)
		return all, err
	}
}

func readCollective(n strictyaml.Node) (ccl.Collective, error) {
	if n.Value() == ccl.CollBarrier.String() {
		return 0, n.Errorf("the engine executes barriers itself: they need no algorithm and no rule")
	}
	return readName[ccl.Collective](n)
}

// readName reads a name that T parses.
func readName[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](n strictyaml.Node) (v T, err error) {
	if _, err := n.Text(); err != nil {
		return v, err
	}
	return strictyaml.Scalar(n, func(name string) (v T, err error) {
		err = P(&v).UnmarshalText([]byte(name))
		return v, err
	})
}
