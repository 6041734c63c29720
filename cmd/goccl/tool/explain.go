package tool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
	"github.com/goccl/goccl/transport/tcp"
)

// explainCommand is `goccl explain`.
type explainCommand struct {
	Config     []string         `sep:"none" placeholder:"FILE" help:"Configuration file; by default what a program finds: $$GOCCL_CONFIG, ./ccl.yaml, the built-in one."`
	Collective []ccl.Collective `placeholder:"NAME" help:"Collectives; by default all."`
	Bytes      []measure.Size   `placeholder:"SIZE" help:"Lengths of one rank's input: 8, 1KiB or 1K, 256MiB or 256M; by default 8, 1KiB, 64KiB, 1MiB and 64MiB."`
	Ranks      []int            `placeholder:"N" help:"World sizes; by default the configured one, else one rank for each usable core."`
	Nodes      []int            `placeholder:"N" help:"Numbers of nodes that the ranks are on, in groups with two levels; by default 1."`
	DType      []ccl.DType      `name:"dtype" placeholder:"NAME" help:"Element types; by default float32."`
	Op         []ccl.Op         `placeholder:"NAME" help:"Operations; by default sum."`
	Algorithm  string           `placeholder:"ENTRY" help:"Overrides defaults.algorithm, like dist.WithAlgorithm."`
	Transport  string           `placeholder:"NAME" help:"Overrides defaults.transport, like dist.WithTransport; auto: that of goroutines, or tcp on several nodes."`
	Timeout    timeout          `placeholder:"D" help:"Overrides defaults.timeout, like dist.WithTimeout; none: wait for ever."`
	Why        bool             `help:"Show for every rule why it did not match; always shown for a single call."`
	JSON       bool             `name:"json" help:"Print one JSON document."`
	Algorithms bool             `help:"Describe the registered algorithms, whatever the configuration."`
	Types      bool             `help:"Show which operations each element type has."`
	Markdown   bool             `help:"With --algorithms or --types: print docs/reference/algorithms.md or docs/reference/types.md."`
}

// Validate checks combinations of flags.
func (c *explainCommand) Validate() error {
	aboutCalls := c.Algorithm+c.Transport != "" || c.Timeout != 0 || c.Why ||
		len(c.Config)+len(c.Collective)+len(c.Bytes)+len(c.Ranks)+len(c.Nodes)+len(c.DType)+len(c.Op) > 0

	switch {
	case len(c.Config) > 1:
		return errors.New("--config names several files, and this command shows one: goccl config check checks several, and goccl bench --config compares them")
	case c.Algorithms && aboutCalls:
		return errors.New("--algorithms does not depend on the configuration: combine it with --json or --markdown only")
	case c.Types && (aboutCalls || c.Algorithms || c.JSON):
		return errors.New("--types does not depend on the call: combine it with --markdown only")
	// The form of the output.
	case c.Markdown && !c.Algorithms && !c.Types:
		return errors.New("--markdown needs --algorithms or --types")
	case c.Markdown && c.JSON:
		return errors.New("--markdown and --json exclude each other")
	}

	for _, n := range c.Ranks {
		if n < 1 || n > config.MaxRanks {
			return fmt.Errorf("--ranks %d: from 1 to %d ranks are possible", n, config.MaxRanks)
		}
	}
	for _, n := range c.Nodes {
		if n < 1 || n >= config.MaxRanks {
			return fmt.Errorf("--nodes %d: from 1 to %d nodes are possible", n, config.MaxRanks-1)
		}
	}
	return nil
}

// Run runs the command.
func (c *explainCommand) Run(stdout io.Writer) error {
	if c.Algorithms {
		return describeAlgorithms(stdout, ccl.DefaultRegistry(), c)
	}
	if c.Types {
		return describeTypes(stdout, c)
	}

	r, err := c.explain()
	if err != nil {
		return err
	}
	if err := show(stdout, c.JSON, r, func(w io.Writer) error { return r.write(w, c.Why) }); err != nil {
		return err
	}
	return r.refusals()
}

// refusals returns an error if calls or whole world sizes are refused.
func (r *explanation) refusals() error {
	rows, refused := 0, 0
	for _, w := range r.Worlds {
		if w.Refused != "" {
			rows++
			refused++
		}

		for _, c := range w.Calls {
			rows++
			if c.Refused != "" {
				refused++
			}
		}
	}
	if refused == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d rows are refused", refused, rows)
}

// timeout is a timeout in ccl.yaml's syntax; none is negative, as in dist.WithTimeout.
type timeout time.Duration

// UnmarshalText parses a positive duration, or none.
func (t *timeout) UnmarshalText(text []byte) error {
	if string(text) == "none" {
		*t = -1
		return nil
	}

	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: want a duration of more than 0, such as 60s; none: wait for ever", text)
	}
	*t = timeout(d)
	return nil
}

// explanation is the result of `goccl explain`, and its JSON.
type explanation struct {
	Config   measure.Config   `json:"config"`
	Worlds   []*world         `json:"worlds"`   // one for each world size and number of nodes
	Findings []config.Finding `json:"findings"` // about the rules as a whole
}

// world is the result for one world size and number of nodes. If no such group can be made, Refused
// is the reason and the fields after it are empty.
type world struct {
	Ranks        int              `json:"ranks"`
	Nodes        int              `json:"nodes"`
	Refused      string           `json:"refused,omitempty"`
	Transport    string           `json:"transport,omitempty"`
	PayloadLimit int              `json:"payload_limit"`      // bytes of the longest input that travels with the synchronisation
	Topology     string           `json:"topology,omitempty"` // "torus_2d 3x2 (6 ranks)"
	Values       []config.Setting `json:"values,omitempty"`
	Calls        []*call          `json:"calls,omitempty"`

	settings *config.Settings
}

// call is the result for one call: the kernel, in the fields from Entry to Cost, or in
// Refused or Note why no kernel runs.
type call struct {
	Ranks      int               `json:"ranks"`
	Nodes      int               `json:"nodes"`
	Transport  string            `json:"transport"`
	Collective ccl.Collective    `json:"collective"`
	DType      ccl.DType         `json:"dtype"`
	Op         string            `json:"op,omitempty"` // if the collective reduces
	Bytes      int               `json:"bytes"`        // of one rank's input
	Total      int               `json:"total"`        // of the longest result on one rank
	Refused    string            `json:"refused,omitempty"`
	Note       string            `json:"note,omitempty"`
	Entry      string            `json:"entry,omitempty"`
	Module     string            `json:"module,omitempty"`
	Kernel     string            `json:"kernel,omitempty"`    // how the module does the collective
	Params     map[string]string `json:"params,omitempty"`    // in ccl.yaml's syntax
	ChosenBy   string            `json:"chosen_by,omitempty"` // "ccl.yaml:31: rule 1"
	Eager      bool              `json:"eager"`               // the inputs travel with the synchronisation
	Cost       *cost             `json:"cost,omitempty"`
	Rules      []config.Verdict  `json:"rules"`
}

// cost is what a kernel declares (see ccl.Cost).
type cost struct {
	Steps int `json:"steps"`
	Bytes int `json:"bytes"` // over all ranks
}

// explain makes the report. It fails if the configuration allows no group for any of the
// world sizes.
func (c *explainCommand) explain() (*explanation, error) {
	cfg, found, err := loadConfig(strings.Join(c.Config, "")) // at most one
	if err != nil {
		return nil, err
	}

	r := &explanation{Config: found}
	var refusal error
	var made *config.Settings

	for _, n := range orElse(c.Ranks, defaultRanks(cfg, c.Algorithm, 1)) {
		for _, nodes := range orElse(c.Nodes, 1) {
			w, err := c.world(cfg, n, nodes)
			if err != nil {
				w = &world{Ranks: n, Nodes: nodes, Refused: err.Error()}
				refusal = cmp.Or(refusal, err)
			} else {
				made = w.settings
			}
			r.Worlds = append(r.Worlds, w)
		}
	}

	if made == nil {
		return nil, refusal
	}
	r.Findings = append([]config.Finding{}, made.Findings()...) // the same for all world sizes
	return r, nil
}

// world explains the calls of a group of n ranks, with two levels if nodes is more than 1.
func (c *explainCommand) world(cfg *config.Config, n, nodes int) (*world, error) {
	if nodes > 1 && nodes >= n {
		return nil, fmt.Errorf("%d ranks on %d nodes do not have two levels: some node has to have several ranks; give --ranks more than --nodes", n, nodes)
	}
	from := fmt.Sprintf("--ranks is %d", n)
	if len(c.Ranks) == 0 {
		from = fmt.Sprintf("dist.Spawn would host %d ranks: one for each usable core", n)
	}

	settings, err := cfg.Resolve(config.Request{
		Algorithm: c.Algorithm,
		Transport: c.Transport,
		Timeout:   time.Duration(c.Timeout),
		Flags:     true,
		Ranks:     n,
		RanksFrom: from,
	})
	if err != nil {
		return nil, err
	}
	w := &world{Ranks: n, Nodes: nodes, Topology: settings.Topology().String(), Values: settings.Values(), settings: settings}
	if err := w.connect(); err != nil {
		return nil, err
	}

	for _, coll := range orElse(c.Collective, ccl.Collectives()...) {
		for _, dtype := range orElse(c.DType, ccl.Float32) {
			ops := []ccl.Op{ccl.Sum}
			if coll.Traits().Reduces {
				ops = orElse(c.Op, ops...)
			}

			for _, op := range ops {
				for _, bytes := range orElse(c.Bytes, defaultBytes...) {
					shape := measure.ShapeOf(coll, dtype, op, int(bytes), settings.Topology())
					shape.Nodes = nodes
					w.Calls = append(w.Calls, w.explain(shape))
				}
			}
		}
	}
	return w, nil
}

// defaultBytes are a payload, a slot, a vector that fits into each of the caches,
// and one that exceeds them.
var defaultBytes = []measure.Size{8, 1 << 10, 64 << 10, 1 << 20, 64 << 20}

func orElse[T any](given []T, otherwise ...T) []T {
	if len(given) > 0 {
		return given
	}
	return otherwise
}

// connect sets the fields that depend on the transport. It connects goroutine ranks and
// closes them. For processes the geometry of their arena suffices.
func (w *world) connect() error {
	name := w.settings.Transport()
	if w.Nodes > 1 && (name == local.Name || name == shm.Name) {
		return fmt.Errorf("transport %q connects ranks on one node, and --nodes is %d; use --transport auto, tcp or mpi", name, w.Nodes)
	}
	if w.Nodes > 1 && name == "auto" {
		name = tcp.Name
	}

	switch name {
	// The payload limit depends on all ranks.
	case tcp.Name, "mpi":
		w.Transport = name
		return nil
	case shm.Name:
		w.Transport, w.PayloadLimit = shm.Name, shm.DefaultGeometry(w.Ranks).Payload
		return nil
	// The transport of goroutines can be asked itself, below.
	case local.Name, "auto":
	default:
		if _, err := transport.Lookup(name); err != nil {
			return err
		}
		return fmt.Errorf("transport %q: goccl explain knows which inputs travel with the synchronisation for local and shm alone; use --transport local, shm, tcp or mpi", name)
	}

	for _, ep := range local.New(w.Ranks) {
		w.Transport, w.PayloadLimit = ep.Name(), ep.PayloadLimit()
		if err := ep.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) explain(s ccl.Shape) *call {
	c := &call{
		Ranks: s.Ranks, Nodes: s.Nodes, Transport: w.Transport,
		Collective: s.Collective, DType: s.DType, Bytes: s.Bytes, Total: s.Total,
		Rules: []config.Verdict{},
	}
	var undefined error
	if s.Collective.Traits().Reduces {
		c.Op = s.Op.String()
		undefined = s.Op.Check(s.Collective, s.DType)
	}

	switch {
	case s.Bytes%s.DType.Size() != 0:
		c.Refused = fmt.Sprintf("%v bytes are not a whole number of %v", s.Bytes, s.DType)
		return c
	case s.Bytes > math.MaxInt/(4*s.Ranks*s.Ranks):
		c.Refused = "the cost of this length overflows"
		return c
	// No kernel, or none needed.
	case undefined != nil:
		c.Refused = undefined.Error()
		return c
	case s.Ranks == 1:
		c.Note = "a group of one rank copies its own input without a kernel"
		return c
	}

	e := w.settings.Explain(s, "", w.PayloadLimit)
	c.Rules = append(c.Rules, e.Rules...)
	if e.Err != nil {
		c.Refused = e.Err.Error()
		return c
	}
	c.Entry, c.Module, c.Kernel = e.Choice.Entry, e.Choice.Algorithm.Name, e.Choice.Kernel.Doc
	c.Params, c.ChosenBy = w.params(c.Entry), e.Choice.Why
	c.Eager, c.Cost = e.Shape.Eager, &cost{e.Cost.Steps, e.Cost.Bytes}
	return c
}

func (w *world) params(entry string) map[string]string {
	params := map[string]string{}
	for _, v := range w.Values {
		if key, ok := strings.CutPrefix(v.Key, "algorithms."+entry+".params."); ok {
			params[key] = v.Value
		}
	}
	return params
}
