package measure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/config"
)

// Mistake is a value with which no case can be measured.
type Mistake struct {
	Of      MistakeOf
	Value   string // as given: an entry, a transport, or ENTRY.KEY
	Message string
}

// MistakeOf is what a value is given for.
type MistakeOf string

// What a Mistake can be about, by the names of flags.
const (
	OfAlgorithm MistakeOf = "algorithm"
	OfTransport MistakeOf = "transport"
	OfParam     MistakeOf = "param"
)

// Error names the flag.
func (m *Mistake) Error() string { return fmt.Sprintf("--%s %s: %s", m.Of, m.Value, m.Message) }

// Check returns a *Mistake for a value of the setups, combinations of one command whose
// configurations Vary has changed, with which no case can be measured: a transport that does not
// exist, an entry that none of the configurations has, a parameter that no algorithm of the entry
// takes.
func Check(setups []*Setup) error {
	for _, s := range setups {
		if err := mistakeOf(s.resolveOne(config.Default(), ""), ""); err != nil {
			return &Mistake{OfTransport, s.Transport, err.Message}
		}
	}

	for _, v := range setups[0].variants() {
		if v.entry == Auto {
			continue
		}

		having := slices.DeleteFunc(slices.Clone(setups), func(s *Setup) bool { return !s.has(v.entry) })
		if len(having) == 0 {
			of := OfParam
			if slices.Contains(setups[0].Entries, v.entry) {
				of = OfAlgorithm
			}
			if err := mistakeOf(setups[0].resolveOne(setups[0].Config, v.entry), ""); err != nil {
				return &Mistake{of, v.entry, err.Message}
			}
		}

		if err := faultyParams(having, v); err != nil {
			return err
		}
	}
	return nil
}

// faultyParams returns the mistake in the parameters of a variant if all setups find one.
func faultyParams(setups []*Setup, v variant) error {
	var first *config.Error
	for _, s := range setups {
		err := mistakeOf(s.resolveOne(s.Config, ""), "algorithms."+v.name()+".params")
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}

	if first == nil {
		return nil
	}
	key, message, _ := strings.Cut(first.Message, ": ")
	if slices.ContainsFunc(setups[0].Params, func(p Param) bool { return p.Entry == v.entry && p.Key == key }) {
		return &Mistake{OfParam, v.entry + "." + key, message}
	}
	return &Mistake{OfParam, v.entry, first.Message}
}

// resolveOne returns the error of a group of one rank with a configuration.
func (s *Setup) resolveOne(c *config.Config, algorithm string) error {
	_, err := c.Resolve(config.Request{Ranks: 1, Transport: s.Transport, Algorithm: algorithm})
	return err
}

// mistakeOf returns the first mistake about a key in an error of a configuration; any if key is "".
func mistakeOf(err error, key string) *config.Error {
	all, several := errors.AsType[config.Errors](err)
	if e, ok := errors.AsType[*config.Error](err); ok && !several {
		all = config.Errors{e}
	}
	for _, e := range all {
		if key == "" || e.Key == key {
			return e
		}
	}
	return nil
}
