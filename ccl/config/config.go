package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/strictyaml"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
)

// auto leaves the algorithm to the rules, the transport to whoever connects the ranks, and
// topology.count to the number of ranks.
const auto = "auto"

// Config is a parsed ccl.yaml, with environment variables if WithEnvironment made it. It is
// immutable and may be used concurrently. Resolve applies it to one group.
type Config struct {
	file      string // its name in messages
	algorithm given[string]
	transport given[string]
	timeout   given[time.Duration] // 0: none
	worldSize given[int]
	debug     given[bool]
	entries   []*entry // in the order of the file
	topology  arrangement
	rules     []rule
}

// origin is where a value comes from: a line of the file, or what overrides it. The zero
// origin stands for a default.
type origin struct {
	line, column int
	by           string // "option", a flag or an environment variable; "" for the file
}

// originOf returns the place of a value in the file.
func originOf(n strictyaml.Node) origin { return origin{line: n.Line, column: n.Column} }

func (o origin) isSet() bool { return o != origin{} }

// given is a value and its origin.
type given[T any] struct {
	value T
	origin
}

// entry is an element of algorithms: the user's name for a module with parameters.
type entry struct {
	origin
	name      string
	module    given[string]
	topology  given[topology.Kind] // if set, the only kind that the entry supports
	worldSize given[int]
	params    given[strictyaml.Node]
	variation *strictyaml.Node // values of WithVariant, which override params; or nil
}

// arrangement is the section topology.
type arrangement struct {
	origin
	kind  given[topology.Kind]
	count given[int] // 0: auto
	w, h  given[int] // 0: unset
}

// rule is an element of rules. Unset fields match everything; a list matches each of its values.
// Lists are in ascending order.
type rule struct {
	origin
	collective given[[]ccl.Collective]
	bytes      given[[]span[ccl.ByteSize]]
	ranks      given[[]span[int]]
	nodes      given[[]span[int]]
	dtype      given[[]ccl.DType]
	op         given[[]ccl.Op]
	algorithm  given[string]
}

// defaults returns the configuration of an empty file.
func defaults(file string) *Config {
	return &Config{
		file:      file,
		algorithm: given[string]{value: auto},
		transport: given[string]{value: auto},
		timeout:   given[time.Duration]{value: time.Minute},
	}
}

// Load reads and parses the file at path. If the file cannot be read, the error is an *Error
// in which errors.Is finds the cause, such as fs.ErrNotExist. Environment variables are not
// applied; see Config.WithEnvironment.
func Load(path string) (*Config, error) {
	data, err := read(path, "")
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// read returns the content of a file; namedBy is the environment variable that holds the path,
// or "".
func read(path, namedBy string) ([]byte, error) {
	data, err := readFile(path)
	if err != nil {
		cause := err
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			cause = p.Err // without the path, which Error.File has
		}
		message := "cannot read the configuration: " + cause.Error()
		if namedBy != "" {
			message += "; " + namedBy + " names this file: correct or unset it"
		}
		return nil, &Error{File: path, Message: message, Err: err}
	}
	return data, nil
}

// readFile reads at most one byte more than a file may have. A pipe is read once per process.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && isStream(info) {
		return readStream(path)
	}
	return readAll(path)
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f)
}

// readLimited reads a file, of one that is too long only as much as shows that.
func readLimited(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, strictyaml.MaxBytes+1))
}

// isStream reports whether a file can be read only once, and reading it may block.
func isStream(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeSocket) != 0
}

// streamTimeout bounds the time to read a configuration from a pipe.
const streamTimeout = time.Minute

// streams has, by path, what each pipe held: it is read once for all ranks of the process.
var streams sync.Map

// readStream returns the content of a pipe. The first rank's call reads it for all.
func readStream(path string) ([]byte, error) {
	once, _ := streams.LoadOrStore(path, sync.OnceValues(func() ([]byte, error) {
		var data []byte
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			data, err = readAll(path)
		}()

		select {
		case <-ended:
			return data, err
		case <-time.After(streamTimeout):
			return nil, fmt.Errorf("it is a pipe, and its writer has not closed it within %v", streamTimeout)
		}
	}))
	return once.(func() ([]byte, error))()
}

// Find returns the configuration of this process: the file that the environment variable
// GOCCL_CONFIG names, else ./ccl.yaml, else the built-in configuration, with environment
// variables applied (see Config.WithEnvironment).
//
// Only a missing ./ccl.yaml leads to the built-in configuration. All other problems are an
// *Error: GOCCL_CONFIG names a missing file, a file cannot be read or has a mistake, or
// ./ccl.yaml is a dangling link, a pipe or a device. GOCCL_CONFIG may name a pipe, as in
// GOCCL_CONFIG=<(generate); it is read once for all ranks of the process.
func Find() (*Config, error) {
	file, data, err := find()
	if err != nil {
		return nil, err
	}
	c := Default()
	if file != c.File() {
		if c, err = Parse(file, data); err != nil {
			return nil, err
		}
	}
	return c.WithEnvironment(os.Getenv)
}

// find returns the name and the content of the file that Find parses.
func find() (file string, data []byte, err error) {
	const variable, local = "GOCCL_CONFIG", "ccl.yaml"
	if path := os.Getenv(variable); path != "" {
		data, err = read(path, variable)
		return path, data, err
	}
	if _, err := os.Lstat(local); errors.Is(err, fs.ErrPermission) {
		return "", nil, &Error{File: "working directory", Err: err, Message: fmt.Sprintf(
			"this process may not search it for %s: start it in another one, or name a configuration by %s", local, variable)}
	}
	info, err := os.Stat(local)
	if err == nil && isStream(info) {
		return "", nil, &Error{File: local, Message: fmt.Sprintf(
			"it is a pipe or a device: make it a file, or name it by %s", variable)}
	}

	data, err = read(local, "")
	if errors.Is(err, fs.ErrNotExist) {
		if link, _ := os.Readlink(local); link != "" {
			return "", nil, &Error{File: local, Err: err, Message: fmt.Sprintf(
				"it is a link to %s, which does not exist: correct or remove it", link)}
		}
		return builtInFile, []byte(goccl.DefaultConfig()), nil
	}
	return local, data, err
}

const builtInFile = "built-in ccl.yaml"

// Default returns the built-in configuration, goccl.DefaultConfig.
func Default() *Config { return builtIn() }

var builtIn = sync.OnceValue(func() *Config {
	c, err := Parse(builtInFile, []byte(goccl.DefaultConfig()))
	if err != nil {
		panic(err)
	}
	return c
})

// File returns the name of the file as error messages show it.
func (c *Config) File() string { return c.file }

// WorldSize returns the configured world size and its origin, such as "ccl.yaml:12
// (defaults.world_size)".
//
// The world_size of the algorithm's entry overrides defaults.world_size, which overrides
// topology.count. An empty algorithm means defaults.algorithm. ok is false if none of the three is
// set: any number of ranks is right.
func (c *Config) WorldSize(algorithm string) (n int, origin string, ok bool) {
	if algorithm == "" {
		algorithm = c.algorithm.value
	}
	if n, _, origin := c.configuredSize(algorithm); n != 0 {
		return n, origin, true
	}
	return 0, "", false
}

// configuredSize returns the world size, 0 if it is not configured, its key or variable,
// and its origin.
func (c *Config) configuredSize(algorithm string) (n int, key, origin string) {
	size, key := c.topology.count, "topology.count"
	if e := c.entry(algorithm); e != nil && e.worldSize.isSet() {
		size, key = e.worldSize, "algorithms."+e.name+".world_size"
	} else if c.worldSize.by != "" {
		return c.worldSize.value, c.worldSize.by, c.worldSize.by
	} else if c.worldSize.isSet() {
		size, key = c.worldSize, "defaults.world_size"
	}
	return size.value, key, c.locate(size.origin) + " (" + key + ")"
}

// entry returns the entry called name, or nil.
func (c *Config) entry(name string) *entry {
	for _, e := range c.entries {
		if e.name == name {
			return e
		}
	}
	return nil
}

// Entries returns the names of the entries in the order of the file. The caller may keep and
// change the slice.
func (c *Config) Entries() []string {
	names := make([]string, len(c.entries))
	for i, e := range c.entries {
		names[i] = e.name
	}
	return names
}

// unknownEntry returns the message for a name that is no entry.
func (c *Config) unknownEntry(name string) string {
	names := c.Entries()
	hint := text.DidYouMean(name, names)
	if hint == "" && text.IsName(name) && name != auto {
		hint = fmt.Sprintf("; make one, such as %s: {module: %[1]s}", text.Cut(name))
	}
	return fmt.Sprintf("there is no entry %s in algorithms%s; entries: %s", text.Quote(name), hint, text.List(names))
}

// locate describes an origin for messages.
func (c *Config) locate(o origin) string {
	switch {
	case o.by != "":
		return o.by
	case o.line == 0:
		return "default"
	}
	return fmt.Sprintf("%s:%d", c.file, o.line)
}

// errorAt returns an error about a value whose origin is o.
func (c *Config) errorAt(o origin, key, format string, args ...any) error {
	if o.by != "" {
		key += " (" + o.by + ")"
	}
	return &Error{File: c.file, Line: o.line, Column: o.column, Key: key, Message: fmt.Sprintf(format, args...)}
}
