package ccl

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Registry maps the names that `module:` in ccl.yaml uses to algorithms. It is
// safe for concurrent use.
type Registry struct {
	mu         sync.RWMutex
	algorithms map[string]*Algorithm
}

// NewRegistry returns a registry of the algorithms. Like Register it panics on
// an invalid one.
func NewRegistry(algorithms ...*Algorithm) *Registry {
	r := &Registry{algorithms: make(map[string]*Algorithm)}
	for _, a := range algorithms {
		r.Register(a)
	}
	return r
}

// Register adds a. It panics if a is invalid (see Algorithm.Validate) or its
// name is taken: both are mistakes in the program, seen when it starts.
func (r *Registry) Register(a *Algorithm) {
	if err := a.Validate(); err != nil {
		panic(err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.algorithms[a.Name]; taken {
		panic(fmt.Sprintf("ccl: algorithm %q is registered twice", a.Name))
	}
	r.algorithms[a.Name] = a
}

// Lookup returns the algorithm called name.
func (r *Registry) Lookup(name string) (*Algorithm, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.algorithms[name]
	return a, ok
}

// Names returns the names of all algorithms, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.algorithms))
}

var defaultRegistry = NewRegistry()

// DefaultRegistry is the registry that Register fills. It is a convenience: a
// Registry is a value, and everything that takes one takes any.
func DefaultRegistry() *Registry { return defaultRegistry }

// Register adds an algorithm to the default registry; call it from an init
// function, and import the package for its side effect. It panics if the
// algorithm is invalid or its name is taken.
func Register(a *Algorithm) { defaultRegistry.Register(a) }
