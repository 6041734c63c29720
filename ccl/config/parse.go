package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
)

// Parse parses the text of a ccl.yaml, UTF-8 of at most 64 KiB; file is its
// name in messages. Reading is strict: whatever a configuration does not know or
// expect is a *Error with its line and, for a name that is wrong, the
// nearest right one.
func Parse(file string, data []byte) (*Config, error) {
	root, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	c := defaults(file)
	if err := c.read(root); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// read fills c with what stands in the file.
func (c *Config) read(root node) error {
	var version given[int]
	err := root.read(fields{
		"version": into(&version, node.version),
		"defaults": func(n node) error {
			return n.read(fields{
				"algorithm":  into(&c.algorithm, node.text),
				"transport":  into(&c.transport, oneOf("transport", transports)),
				"timeout":    into(&c.timeout, node.timeout),
				"world_size": into(&c.worldSize, node.size),
				"debug":      into(&c.debug, node.boolean),
			})
		},
		"algorithms": func(n node) error { return n.each(c.readEntry) },
		"topology":   func(n node) error { return c.topology.read(n) },
		"rules":      func(n node) error { return n.elements(c.readRule) },
	})
	if err == nil && !version.isSet() {
		return root.errorf("the version is missing; the file has to begin with version: 1")
	}
	return err
}

func (c *Config) readEntry(n node, name string) error {
	switch {
	case !text.IsName(name):
		return n.errorf("the name of an entry has only letters a to z, digits and underscores")
	case name == auto:
		return n.errorf("auto cannot be the name of an entry: it means that the rules choose")
	}
	e := &entry{origin: origin{line: n.line}, name: name}
	err := n.read(fields{
		"module":     into(&e.module, node.text),
		"topology":   into(&e.topology, node.kind),
		"world_size": into(&e.worldSize, node.size),
		"params":     into(&e.params, node.itself),
	})
	if err == nil && !e.module.isSet() {
		return n.errorf("the module is missing: the algorithm that the entry is for, such as module: ring")
	}
	c.entries = append(c.entries, e)
	return err
}

func (t *arrangement) read(n node) error {
	t.line = n.line
	return n.read(fields{
		"kind":  into(&t.kind, node.kind),
		"count": into(&t.count, node.count),
		"w":     into(&t.w, node.size),
		"h":     into(&t.h, node.size),
	})
}

func (c *Config) readRule(n node) error {
	r := rule{origin: origin{line: n.line}}
	err := n.read(fields{
		"collective": into(&r.collective, node.collective),
		"bytes":      into(&r.bytes, node.bytesSpan),
		"ranks":      into(&r.ranks, node.ranksSpan),
		"dtype":      into(&r.dtype, oneOf("dtype", ccl.DTypes())),
		"op":         into(&r.op, oneOf("op", ccl.Ops())),
		"algorithm":  into(&r.algorithm, node.text),
	})
	switch {
	case err != nil:
		return err
	case !r.algorithm.isSet():
		return n.errorf("the algorithm is missing: the entry that the rule chooses")
	case len(c.rules) == maxConfigRules:
		return n.errorf("the file has more than %d rules", maxConfigRules)
	case r.op.isSet() && r.collective.isSet() && !r.collective.value.Reduces():
		return n.errorf("%s takes no op: the rule would never match", r.collective.value)
	}
	c.rules = append(c.rules, r)
	return nil
}

// check looks at what only the whole file can tell.
func (c *Config) check() error {
	if name := c.algorithm.value; name != auto && c.entry(name) == nil {
		return c.errorAt(c.algorithm.origin, "defaults.algorithm", "%s", c.unknownEntry(name))
	}
	for i, r := range c.rules {
		if name := r.algorithm.value; c.entry(name) == nil {
			return c.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"), "%s", c.unknownEntry(name))
		}
	}
	if c.topology.count.value == 0 {
		return nil // Resolve knows how many ranks there are
	}
	_, err := c.arrange(c.topology.count.value, "")
	return err
}

// arrange returns the topology that the file describes, for count ranks; why,
// which goes into the message, says where that number is from.
func (c *Config) arrange(count int, why string) (*topology.Topology, error) {
	t, err := topology.New(c.topology.kind.value, count, c.topology.w.value, c.topology.h.value)
	if err != nil {
		return nil, &Error{
			File:    c.file,
			Line:    c.topology.line,
			Key:     "topology",
			Message: withoutPackage(err) + why,
			Err:     err,
		}
	}
	return t, nil
}

func withoutPackage(err error) string { return strings.TrimPrefix(err.Error(), "topology: ") }

// ruleKey returns the path of a field of c.rules[i]; the first rule is number 1.
func ruleKey(i int, field string) string { return fmt.Sprintf("rules[%d].%s", i+1, field) }

// Readers of single values.

func (n node) version() (int, error) {
	if n.what() != "the number 1" {
		return 0, n.errorf("%s is not a version that is known here; it has to be 1", n.what())
	}
	return 1, nil
}

func (n node) timeout() (time.Duration, error) {
	if !n.isText() {
		return 0, n.errorf("%s; got %s", wantTimeout, n.what())
	}
	d, err := parseTimeout(n.Value)
	if err != nil {
		return 0, n.errorf("%v", err)
	}
	return d, nil
}

const wantTimeout = "want a duration with its unit, such as 60s, or none"

// parseTimeout reads a timeout, 0 for none.
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

func (n node) kind() (topology.Kind, error) {
	name, err := n.text()
	if err != nil {
		return 0, err
	}
	k, err := topology.ParseKind(name)
	if err != nil {
		return 0, n.errorf("%s", withoutPackage(err))
	}
	return k, nil
}

// count reads the number of ranks of a topology, 0 for auto.
func (n node) count() (int, error) {
	switch {
	case !n.isText():
		return n.size()
	case n.Value != auto:
		return 0, n.errorf("want auto, or a whole number without quotes; got %s", n.what())
	}
	return 0, nil
}

func (n node) bytesSpan() (span[ccl.ByteSize], error) {
	return scalar(n, func(s string) (span[ccl.ByteSize], error) { return parseSpan(s, parseByteSize) })
}

func (n node) ranksSpan() (span[int], error) {
	return scalar(n, func(s string) (span[int], error) { return parseSpan(s, parseRanks) })
}

func (n node) collective() (ccl.Collective, error) {
	if n.Value == ccl.CollBarrier.String() {
		return 0, n.errorf("a barrier is the engine's own: it needs no algorithm and no rule")
	}
	return oneOf("collective", ccl.Collectives())(n)
}

// itself keeps a place for later: the parameters, whose keys the algorithm knows.
func (n node) itself() (node, error) { return n, nil }
