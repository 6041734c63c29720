package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
)

// Checked is what Check has found in a file.
type Checked struct {
	File     string // its name in messages
	Err      error  // nil, an *Error, or Errors
	Warnings []Finding
}

// Check reads the file at path, or with path "" the one that Find finds, and reports all its
// mistakes.
//
// Among them are those that otherwise Resolve finds: unknown modules and parameters, rules that
// never match. Modules are looked up in the registry; nil means DefaultRegistry. Environment
// variables do not override the file. Check assumes the number of ranks that the file asks for, or
// 4 if it asks for none.
//
// A file without mistakes can have warnings: its Findings, rules that are not in use, and entries
// that no rule names, unless they only repeat a module under its own name.
func Check(path string, registry ccl.Registry) Checked {
	file, data, err := path, []byte(nil), error(nil)
	if path == "" {
		file, data, err = find()
	} else {
		data, err = read(path, "")
	}
	if err != nil {
		return Checked{File: cmp.Or(file, "ccl.yaml"), Err: err}
	}
	warnings, err := check(file, data, registry)
	return Checked{file, err, warnings}
}

// CheckReader is Check of the text that r returns, such as the standard input. Messages call it
// file.
func CheckReader(file string, r io.Reader, registry ccl.Registry) Checked {
	data, err := readLimited(r)
	if err != nil {
		return Checked{File: file, Err: &Error{File: file, Message: "cannot read the configuration: " + err.Error(), Err: err}}
	}
	warnings, err := check(file, data, registry)
	return Checked{file, err, warnings}
}

func check(file string, data []byte, registry ccl.Registry) ([]Finding, error) {
	c, err := parsePartly(file, data)
	r := Request{Registry: registry}
	switch {
	case c == nil:
		return nil, err
	case err != nil: // modules and parameters can be wrong too
		s := &Settings{config: c}
		return nil, inOrder(err, s.findAlgorithms(r))
	}
	r.Ranks = c.anyRanks()
	r.RanksFrom = fmt.Sprintf("the file is checked with %d", r.Ranks)
	s, err := c.Resolve(r)
	if err != nil {
		return nil, err
	}
	return append(s.Findings(), c.idle()...), nil
}

// anyRanks returns a number of ranks that the file allows.
func (c *Config) anyRanks() int {
	if n, _, _ := c.configuredSize(c.algorithm.value); n != 0 {
		return n
	}
	if grid := c.topology.w.value * c.topology.h.value; grid != 0 {
		return grid
	}
	for _, r := range c.rules {
		if e := c.entry(r.algorithm.value); e.worldSize.isSet() {
			return e.worldSize.value
		}
	}
	return 4 // a square, as grids need
}

// idle reports rules that are not in use, and entries that only an option can choose.
func (c *Config) idle() (findings []Finding) {
	named := []string{c.algorithm.value}
	for _, r := range c.rules {
		named = append(named, r.algorithm.value)
	}
	if c.algorithm.value != auto && len(c.rules) > 0 {
		findings = append(findings, Finding{c.locate(c.rules[0].origin), fmt.Sprintf(
			"the rules are not in use: defaults.algorithm is %s (%s)", text.Cut(c.algorithm.value), c.locate(c.algorithm.origin))})
	}
	for _, e := range c.entries {
		if e.name == e.module.value && !e.params.isSet() && !e.topology.isSet() && !e.worldSize.isSet() {
			continue // a module by its own name is there for options
		}
		if !slices.Contains(named, e.name) {
			findings = append(findings, Finding{c.locate(e.origin), fmt.Sprintf(
				"neither a rule nor defaults.algorithm names the entry %s: only an option or GOCCL_ALGORITHM can choose it", text.Cut(e.name))})
		}
	}
	return findings
}
