package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/strictyaml"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/topology"
)

// auto leaves a choice to goccl: of the algorithm to the rules, of the transport
// to the program that connects the ranks, of topology.count to their number.
const auto = "auto"

// transports are the names that defaults.transport takes.
var transports = []string{auto, "local", "shm"}

// Config is a parsed ccl.yaml. It is immutable and safe for concurrent use; it
// says what is configured, and Resolve makes of it what holds for one group.
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

// origin says where a value comes from: a line of the file, or something that has
// taken its place. The zero origin is that of defaults.
type origin struct {
	line int
	by   string // "option", or the variable of the environment; "" for the file
}

var fromOption = origin{by: "option"}

func (o origin) isSet() bool { return o != origin{} }

// given is a value and its origin.
type given[T any] struct {
	value T
	origin
}

// entry is one of algorithms: a name of the user's for a module with parameters.
type entry struct {
	origin
	name      string
	module    given[string]
	topology  given[topology.Kind] // if set, the only kind the entry is for
	worldSize given[int]
	params    given[strictyaml.Node]
}

// arrangement is the section topology.
type arrangement struct {
	origin
	kind  given[topology.Kind]
	count given[int] // 0: auto
	w, h  given[int] // 0: not given
}

// rule is one of rules: fields that are not set match everything.
type rule struct {
	origin
	collective given[ccl.Collective]
	bytes      given[span[ccl.ByteSize]]
	ranks      given[span[int]]
	dtype      given[ccl.DType]
	op         given[ccl.Op]
	algorithm  given[string]
}

// defaults returns what holds where a file says nothing.
func defaults(file string) *Config {
	return &Config{
		file:      file,
		algorithm: given[string]{value: auto},
		transport: given[string]{value: auto},
		timeout:   given[time.Duration]{value: time.Minute},
	}
}

// Load reads and parses the file at path. A file that cannot be read is a
// *Error in which errors.Is finds the cause, such as fs.ErrNotExist.
func Load(path string) (*Config, error) { return load(path, "") }

// load is Load for a path that namedBy, if not empty, has named.
func load(path, namedBy string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		cause := err
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			cause = p.Err // the path stands before it already
		}
		message := "cannot read the configuration: " + cause.Error()
		if namedBy != "" {
			message += "; " + namedBy + " names this file: correct or unset it"
		}
		return nil, &Error{File: path, Message: message, Err: err}
	}
	return Parse(path, data)
}

// readFile reads no more of a file than is needed to see that it is too long. A pipe, which
// can be read once, is read once in a process.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && isStream(info) {
		return readStream(path, info)
	}
	return readAll(path)
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1))
}

// isStream reports whether a file can be read once only, and perhaps has to be waited for.
func isStream(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeSocket) != 0
}

// streamTimeout is how long a configuration is waited for that comes from a pipe.
const streamTimeout = time.Minute

// stream is a file that is read once in a process, for all its ranks.
type stream struct {
	info  fs.FileInfo
	ended chan struct{}
	data  []byte
	err   error
}

var streams struct {
	sync.Mutex
	all []*stream
}

// readStream returns what a pipe holds: one rank reads it, and all get it.
func readStream(path string, info fs.FileInfo) ([]byte, error) {
	streams.Lock()
	i := slices.IndexFunc(streams.all, func(s *stream) bool { return os.SameFile(s.info, info) })
	if i < 0 {
		i = len(streams.all)
		s := &stream{info: info, ended: make(chan struct{})}
		streams.all = append(streams.all, s)
		go func() {
			s.data, s.err = readAll(path)
			close(s.ended)
		}()
	}
	s := streams.all[i]
	streams.Unlock()
	timer := time.NewTimer(streamTimeout)
	defer timer.Stop()
	select {
	case <-s.ended:
		return s.data, s.err
	case <-timer.C:
		return nil, fmt.Errorf("it is a pipe, and its writer has not closed it within %v", streamTimeout)
	}
}

// Find returns the configuration of this process: the file that the
// environment variable GOCCL_CONFIG names, else ./ccl.yaml, else the built-in
// one, and in it what the environment says (see WithEnvironment). A file that is
// named and missing is an error, as is one that cannot be read or has a mistake, and a
// ./ccl.yaml that is a link to nothing, or no file: nothing falls back from an error. What
// a pipe holds, GOCCL_CONFIG=<(generate), is read once, for all ranks of the process.
func Find() (*Config, error) {
	c, err := findFile()
	if err != nil {
		return nil, err
	}
	return c.WithEnvironment(os.Getenv)
}

func findFile() (*Config, error) {
	const variable, local = "GOCCL_CONFIG", "ccl.yaml"
	if path := os.Getenv(variable); path != "" {
		return load(path, variable)
	}
	info, err := os.Stat(local)
	if err == nil && isStream(info) {
		return nil, &Error{File: local, Message: fmt.Sprintf(
			"it is a pipe or a device: make it a file, or name it by %s", variable)}
	}
	c, err := load(local, "")
	if errors.Is(err, fs.ErrNotExist) {
		if link, _ := os.Readlink(local); link != "" {
			return nil, &Error{File: local, Err: err, Message: fmt.Sprintf(
				"it is a link to %s, which does not exist: correct or remove it", link)}
		}
		return Default(), nil
	}
	return c, err
}

// Default returns the built-in configuration, goccl.DefaultConfig. It
// panics if the program has overwritten that with nonsense.
func Default() *Config { return builtIn() }

var builtIn = sync.OnceValue(func() *Config {
	c, err := Parse("built-in ccl.yaml", []byte(goccl.DefaultConfig()))
	if err != nil {
		panic(err)
	}
	return c
})

// File returns the name of the file, as messages show it.
func (c *Config) File() string { return c.file }

// WorldSize returns the world size that the configuration asks for and where it
// says so, such as "ccl.yaml:12 (defaults.world_size)". The world_size of the
// algorithm's entry goes before defaults.world_size, and that before
// topology.count (S4.5). An empty algorithm means defaults.algorithm. ok is
// false if the size is left open: there are as many ranks as there are.
func (c *Config) WorldSize(algorithm string) (n int, origin string, ok bool) {
	if algorithm == "" {
		algorithm = c.algorithm.value
	}
	size, key := c.configuredSize(algorithm)
	if size.value == 0 {
		return 0, "", false
	}
	return size.value, c.sizePlace(size, key), true
}

// sizePlace says where a world size comes from, for messages.
func (c *Config) sizePlace(size given[int], key string) string {
	if size.by != "" {
		return size.by
	}
	return c.place(size.origin) + " (" + key + ")"
}

// configuredSize returns the world size, 0 if it is left open, and its key: what
// to change for another.
func (c *Config) configuredSize(algorithm string) (size given[int], key string) {
	if e := c.entry(algorithm); e != nil && e.worldSize.isSet() {
		return e.worldSize, "algorithms." + e.name + ".world_size"
	}
	if c.worldSize.isSet() {
		return c.worldSize, cmp.Or(c.worldSize.by, "defaults.world_size")
	}
	return c.topology.count, "topology.count"
}

// entry returns the entry called name, nil if there is none.
func (c *Config) entry(name string) *entry {
	for _, e := range c.entries {
		if e.name == name {
			return e
		}
	}
	return nil
}

// Entries returns the names of the entries, in the order of the file. The slice
// belongs to the caller.
func (c *Config) Entries() []string {
	names := make([]string, len(c.entries))
	for i, e := range c.entries {
		names[i] = e.name
	}
	return names
}

// unknownEntry says that there is no entry called name, and which there are.
func (c *Config) unknownEntry(name string) string {
	names := c.Entries()
	return fmt.Sprintf("there is no entry %s in algorithms%s; entries: %s", text.Quote(name), text.DidYouMean(name, names), text.List(names))
}

// place returns where a value comes from, for messages.
func (c *Config) place(o origin) string {
	switch {
	case o.by != "":
		return o.by
	case o.line == 0:
		return "default"
	}
	return fmt.Sprintf("%s:%d", c.file, o.line)
}

// errorAt returns an error about the value that comes from o.
func (c *Config) errorAt(o origin, key, format string, args ...any) error {
	if o.by != "" {
		key += " (" + o.by + ")"
	}
	return &Error{File: c.file, Line: o.line, Key: key, Message: fmt.Sprintf(format, args...)}
}
