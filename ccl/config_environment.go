package ccl

import (
	"fmt"
	"strconv"
	"time"
)

// WithEnvironment returns c with what the environment says: GOCCL_ALGORITHM,
// GOCCL_TRANSPORT, GOCCL_TIMEOUT, GOCCL_WORLD_SIZE and GOCCL_DEBUG, written as in
// ccl.yaml, take the place of the values of those names in defaults. What a program asks
// for by a Request goes before both. getenv is os.Getenv or of its kind; a
// variable that is set to nothing counts as unset. c stays as it is.
//
// A value that ccl.yaml could not hold is a *ConfigError, here or, for names, in
// Resolve.
func (c *Config) WithEnvironment(getenv func(string) string) (*Config, error) {
	with := *c
	for _, err := range []error{
		fromVariable(getenv, "GOCCL_ALGORITHM", &with.algorithm, verbatim),
		fromVariable(getenv, "GOCCL_TRANSPORT", &with.transport, verbatim),
		fromVariable(getenv, "GOCCL_TIMEOUT", &with.timeout, parseTimeout),
		fromVariable(getenv, "GOCCL_WORLD_SIZE", &with.worldSize, parseRanks),
		fromVariable(getenv, "GOCCL_DEBUG", &with.debug, parseBool),
	} {
		if err != nil {
			return nil, err
		}
	}
	return &with, nil
}

func fromVariable[T string | int | bool | time.Duration](getenv func(string) string, variable string, g *given[T], parse func(string) (T, error)) error {
	text := getenv(variable)
	if text == "" {
		return nil
	}
	value, err := parse(text)
	if err != nil {
		return &ConfigError{File: "environment", Key: variable, Message: err.Error()}
	}
	*g = given[T]{value, origin{by: variable}}
	return nil
}

func verbatim(s string) (string, error) { return s, nil }

func parseBool(s string) (bool, error) {
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return v, nil
}
