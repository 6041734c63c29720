package transport

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
)

// Provider makes a transport available under a name. A transport's package registers it in an init
// function, and programs import the package for that side effect.
type Provider struct {
	// Name is the transport's name in ccl.yaml, GOCCL_TRANSPORT and dist.WithTransport: lower-case
	// letters, digits and "_", a letter first, not "auto".
	Name string
	// Detect reports whether the transport can connect the ranks of j, and whether it is the one for
	// them. It asks no other rank, and answers the same on all ranks: the choice depends on it.
	//
	// A nil error means that the transport can connect them. auto reports that it does so without
	// having been asked for by name: "auto" takes the first transport that returns true. Otherwise
	// the error is *MissingConfigurationError (what the user has to set or call) or
	// *NotAvailableError (the transport is not for these ranks, or not for this system).
	Detect func(j *Job) (auto bool, err error)
	// Join connects the ranks of j, and returns the endpoints of those that this process hosts: of
	// j.Rank alone if j.Launched, otherwise of all ranks, by rank. Detect has returned no error.
	//
	// Join is collective. It returns on all ranks, or fails on all that have come, and leaves
	// nothing behind; at the latest when ctx ends. errors.As finds *TimeoutError with the ranks that
	// did not come if the deadline of ctx has passed, and *PeerLostError, *AbortedError,
	// *NotAvailableError and *AllocationFailedError where they apply.
	Join func(ctx context.Context, j *Job) ([]Endpoint, error)
	// Leave ends what Join has started in this process; it is nil if there is nothing to end. It is
	// called once, after all endpoints were closed, by a process that a launcher has started. Join is
	// not called after it, or fails. It may wait for the other ranks, until ctx ends.
	Leave func(ctx context.Context) error
}

// Job describes the ranks that a transport is to connect.
type Job struct {
	Size int // number of ranks
	// Launched: a launcher started this process as one of the ranks, Rank, and the others are other
	// processes. Otherwise this process hosts all of them as goroutines.
	Launched bool
	Rank     int
	// Origin says where Size comes from, as a part of a message: "this process is rank 1 of 4 by the
	// variables of Slurm (SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4)".
	Origin string
	// Apart says why the ranks are not all on this node, as a part of a message; "" if they are, and
	// also if this process cannot know: of RANK, WORLD_SIZE and MASTER_ADDR without
	// LOCAL_WORLD_SIZE, the node of MASTER_ADDR cannot.
	Apart string
	// Key identifies a launched job, and its restart, among the jobs of this node: up to 64 letters,
	// digits, ".", "_" and "-". On several nodes only goccl run has one; otherwise it is "".
	Key string
	// Secret tells jobs of the same key apart; "" if the launcher has none.
	Secret string
	// Attempt counts, from 1, how often this process has connected ranks or tried to. It is the same
	// on all ranks.
	Attempt int
}

// known are the transports that every program knows by name, in the order in which "auto" asks
// them. A program may lack the package that provides one.
var known = []string{"mpi", "tcp", "shm", "local"}

var providers struct {
	interleave.RWMutex
	all []Provider // in the order of compareNames
}

var providerName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Register adds a provider. It panics if the provider lacks a field, its name is invalid or taken:
// these are defects of the program that show when it starts.
func Register(p Provider) {
	switch {
	case !providerName.MatchString(p.Name) || p.Name == "auto":
		panic(fmt.Sprintf("transport: %q cannot be the name of a transport: it has lower-case letters, digits and _, and is not auto", p.Name))
	case p.Detect == nil || p.Join == nil:
		panic(fmt.Sprintf("transport: the provider of %q lacks Detect or Join", p.Name))
	}

	providers.Lock()
	defer providers.Unlock()
	i, taken := slices.BinarySearchFunc(providers.all, p.Name, func(q Provider, name string) int { return compareNames(q.Name, name) })
	if taken {
		panic(fmt.Sprintf("transport: %q is registered twice", p.Name))
	}
	providers.all = slices.Insert(providers.all, i, p)
}

// compareNames sorts mpi, tcp, shm and local, in this order, before all other names.
func compareNames(a, b string) int {
	position := func(name string) int {
		if i := slices.Index(known, name); i >= 0 {
			return i
		}
		return len(known)
	}
	return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a, b))
}

// Providers returns the registered providers, in the order in which "auto" asks them: mpi, tcp,
// shm, local, then all others by name.
func Providers() []Provider {
	providers.RLock()
	defer providers.RUnlock()
	return slices.Clone(providers.all)
}

// Lookup returns the provider of that name. If none is registered, the error is *NotAvailableError.
func Lookup(name string) (Provider, error) {
	for _, p := range Providers() {
		if p.Name == name {
			return p, nil
		}
	}

	reason := "this program links no package that provides it"
	switch name {
	case "mpi":
		reason += `; add this line to its imports: _ "github.com/goccl/goccl/transport/mpi"`
	default:
		reason += "; a program imports one for its side effect"
	}
	return Provider{}, &NotAvailableError{name, reason}
}

// Names returns the names that a program may ask for, in the order of Providers: mpi, tcp, shm and
// local, registered or not, and those of all other registered providers.
func Names() []string {
	names := slices.Clone(known)
	for _, p := range Providers() {
		names = append(names, p.Name)
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}
