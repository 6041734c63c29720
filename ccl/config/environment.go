package config

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/text"
)

// WithEnvironment returns a copy of c in which GOCCL_ALGORITHM, GOCCL_TRANSPORT, GOCCL_TIMEOUT,
// GOCCL_WORLD_SIZE and GOCCL_DEBUG override the values of the same names in defaults.
//
// They have the same syntax as in ccl.yaml. A Request overrides both. getenv is os.Getenv or a
// substitute; an empty variable counts as unset.
//
// An invalid value is an *Error, several are Errors. Names of algorithms and transports are checked
// by Resolve.
func (c *Config) WithEnvironment(getenv func(string) string) (*Config, error) {
	with := *c
	if err := inOrder(
		fromVariable(getenv, "GOCCL_ALGORITHM", &with.algorithm, verbatim),
		fromVariable(getenv, "GOCCL_TRANSPORT", &with.transport, verbatim),
		fromVariable(getenv, "GOCCL_TIMEOUT", &with.timeout, parseTimeout),
		fromVariable(getenv, "GOCCL_WORLD_SIZE", &with.worldSize, parseRanks),
		fromVariable(getenv, "GOCCL_DEBUG", &with.debug, parseBool),
	); err != nil {
		return nil, err
	}
	return &with, nil
}

// environmentPrefix starts the names of goccl's variables.
const environmentPrefix = "GOCCL_"

// knownVariables are the variables that any package of goccl reads or sets.
var knownVariables = []string{
	"GOCCL_ALGORITHM", "GOCCL_CONFIG", "GOCCL_DEBUG", "GOCCL_LOG", "GOCCL_TIMEOUT", "GOCCL_TRANSPORT", "GOCCL_WORLD_SIZE",
	"GOCCL_SHM_NAME", "GOCCL_SHM_RANK", "GOCCL_SHM_SECRET", "GOCCL_SHM_SIZE", "GOCCL_ERROR_FILE", "GOCCL_RESULT_FILE",
	"GOCCL_SECRET", "GOCCL_SECRET_FILE", "GOCCL_TLS_DIR", "GOCCL_INTERFACE", "GOCCL_NODES", "GOCCL_RESTART",
	"GOCCL_MPI_LIBRARY",
	"GOCCL_FLIGHT", "GOCCL_FLIGHT_TIMES", "GOCCL_FLIGHT_END", "GOCCL_METRICS", "GOCCL_WATCH_LAUNCHER",
}

// CheckEnvironment returns an *Error if a variable's name starts with GOCCL_, in any case, but is
// unknown, or is one letter off a known name, because a misspelt variable would otherwise be
// ignored; Errors if there are several. Each suggests the nearest known name.
//
// environ has the form of os.Environ; an empty variable counts as unset.
func CheckEnvironment(environ []string) error {
	var unknown []string
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if runtime.GOOS == "windows" { // its names have no case
			name = strings.ToUpper(name)
		}
		hasPrefix := strings.HasPrefix(strings.ToUpper(name), environmentPrefix)
		if value != "" && !slices.Contains(knownVariables, name) && (hasPrefix || otherSpelling(name) != "") {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}

	slices.Sort(unknown)
	short := make([]string, len(knownVariables))
	for i, known := range knownVariables {
		short[i] = strings.ToLower(strings.TrimPrefix(known, environmentPrefix))
	}

	var all []error
	for i, name := range slices.Compact(unknown) {
		message := "goccl has no such variable"
		if known := otherSpelling(name); known != "" {
			message += " (did you mean " + known + "?)"
		} else if nearest := text.Nearest(name[len(environmentPrefix):], short); nearest != "" {
			message += " (did you mean " + environmentPrefix + strings.ToUpper(nearest) + "?)"
		}

		if i == 0 {
			message += "; it has " + text.List(knownVariables)
		}
		all = append(all, &Error{File: "environment", Key: text.Cut(name), Message: message + "; correct or unset it"})
	}
	return inOrder(all...)
}

// otherSpelling returns the variable of goccl that a name is in another spelling: in another case,
// with other separators, or with another letter; "" if it is none.
func otherSpelling(name string) string {
	letters := strings.NewReplacer("_", "", "-", "", ".", "")
	for _, known := range knownVariables {
		if text.EditDistance(letters.Replace(strings.ToUpper(name)), letters.Replace(known)) <= 1 {
			return known
		}
	}
	return ""
}

func fromVariable[T string | int | bool | time.Duration](getenv func(string) string, variable string, g *given[T], parse func(string) (T, error)) error {
	text := getenv(variable)
	if text == "" {
		return nil
	}
	value, err := parse(text)
	if err != nil {
		return &Error{File: "environment", Key: variable, Message: err.Error()}
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
