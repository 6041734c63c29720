package dist

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	// Registers the algorithms that ccl.yaml can name.
	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/tcp"
)

// InitOption is an option of InitProcessGroup. Later options override earlier ones.
type InitOption struct{ set func(*initOptions) }

type initOptions struct {
	config     *config.Config
	configured bool
	file       string
	filed      bool
	algorithm  string
	transport  string
	timeout    time.Duration
	logger     *slog.Logger
	ignored    []string
	flight     string
	recording  []ccl.Option // of the flight recorder, the counters and the observer
}

// WithConfig uses the configuration c, which overrides every file. A nil c makes
// InitProcessGroup fail.
func WithConfig(c *config.Config) InitOption {
	return InitOption{func(o *initOptions) { o.config, o.configured = c, true }}
}

// WithConfigFile loads the configuration from the file path, in the format of
// ccl.yaml.
func WithConfigFile(path string) InitOption {
	return InitOption{func(o *initOptions) { o.file, o.filed = path, true }}
}

// WithAlgorithm overrides defaults.algorithm: an entry of ccl.yaml's algorithms, or
// "auto". The empty name is ignored.
func WithAlgorithm(entry string) InitOption {
	return InitOption{func(o *initOptions) { o.algorithm = cmp.Or(entry, o.algorithm) }}
}

// WithTransport overrides defaults.transport. The empty name is ignored. The others are
//
//   - "auto": see InitProcessGroup
//   - "local": goroutines of one process
//   - "shm": processes of one node that a launcher has started
//   - "tcp": those of one or several nodes
//   - "mpi": those of an MPI launcher, if the program imports
//     github.com/goccl/goccl/transport/mpi
//   - that of another transport that the program links: see transport.Provider
func WithTransport(name string) InitOption {
	return InitOption{func(o *initOptions) { o.transport = cmp.Or(name, o.transport) }}
}

// WithTimeout overrides defaults.timeout, which bounds every wait for other ranks, including
// InitProcessGroup itself. 0 is ignored; a negative d waits forever.
func WithTimeout(d time.Duration) InitOption {
	return InitOption{func(o *initOptions) { o.timeout = cmp.Or(d, o.timeout) }}
}

// WithLogger logs to l what ccl.WithLogger logs, and, at level info, ignored options and
// what config.Settings.Findings reports about the configuration. It overrides the
// environment variable GOCCL_LOG, which logs to standard error from the level warn, info
// or debug on. Without both nothing is logged.
func WithLogger(l *slog.Logger) InitOption {
	return InitOption{func(o *initOptions) { o.logger = cmp.Or(l, o.logger) }}
}

// WithWorldSize is accepted for compatibility with torch, ignored, and logged:
// ccl.yaml and Spawn, or the launcher, determine the number of ranks.
func WithWorldSize(n int) InitOption { return ignore("WithWorldSize(%d)", n) }

// WithRank is accepted for compatibility with torch, ignored, and logged: Spawn or
// the launcher determines a goroutine's rank.
func WithRank(rank int) InitOption { return ignore("WithRank(%d)", rank) }

func ignore(format string, n int) InitOption {
	return InitOption{func(o *initOptions) { o.ignored = append(o.ignored, fmt.Sprintf(format, n)) }}
}

// InitProcessGroup connects the ranks of the job to the default process group.
// The name of the backend is "ccl"; any other is *InvalidBackendError.
//
// It is collective: the n-th call of a rank waits for the n-th calls of all
// others, and either all succeed or all fail. In this order it loads the configuration,
// finds the algorithms, determines the world size, builds the topology, and connects
// the ranks. The first step that fails on any rank fails the call on all; nothing is
// left behind, so the call can be retried.
//
// The configuration comes from the first of these that is set: WithConfig, WithConfigFile,
// WithSpawnConfigFile, the environment variable GOCCL_CONFIG, ./ccl.yaml, the built-in
// configuration. GOCCL_ALGORITHM, GOCCL_TRANSPORT, GOCCL_TIMEOUT, GOCCL_WORLD_SIZE and
// GOCCL_DEBUG override its defaults; WithAlgorithm, WithTransport and WithTimeout override both
// (see config.Config.WithEnvironment). GOCCL_FLIGHT is the directory of WithFlight; with
// GOCCL_FLIGHT_TIMES=true the flight recorder has the times of all calls (see ccl.WithCallTimes),
// and with GOCCL_FLIGHT_END=true it is also written when a rank leaves without a failure. With
// GOCCL_METRICS=true calls are counted (see WithMetrics).
// An unknown variable whose name starts with GOCCL_ is an error that suggests the nearest known
// one, and so is a value of GOCCL_LOG other than warn, info and debug. All ranks need the same
// values; the error names the first key that differs.
//
// If the torchrun, mpirun, mpiexec or srun that has started the process ends, its groups fail
// within seconds, by an *AbortedError that names it, unless GOCCL_WATCH_LAUNCHER is false.
//
// The transport connects the ranks. auto is the first of mpi, tcp, shm, local and all others by
// name that the program links and that detects itself: shm if a launcher started the ranks as
// processes of one node, mpi or tcp on several, local if they are goroutines. A transport that an
// option or GOCCL_TRANSPORT names is checked before anything is loaded. A rank whose own
// arguments or configuration are wrong still waits for the others, within the timeout, to tell
// them.
//
// Errors are *InitializationFailedError around one of: *ConfigError (with an
// *InvalidBackendError inside if no transport has the given name),
// *MissingConfigurationError (the configured world size is not the number of
// ranks, or launcher variables are missing, or those of the named transport),
// *BackendNotAvailableError (the program does not link the
// transport, or it cannot connect these ranks), *MismatchError, *TimeoutError (with the
// ranks that did not call), *PeerLostError (a worker returned without
// calling), the context's error, or *AbortedError, which names the rank
// that failed with any of the other errors. A rank that already has a group gets
// ErrAlreadyInitialized, a goroutine without a rank ErrUnbound; these two
// errors concern the caller alone.
func InitProcessGroup(backend string, opts ...InitOption) error {
	r, err := self()
	if err != nil {
		return err
	}
	m, err := r.enter()
	if err != nil {
		return err
	}

	comm, err := r.connect(m, backend, opts)
	if err := m.conclude(r, err); err != nil {
		if comm != nil {
			_ = comm.Close()
		}
		_ = r.endJoin(nil)
		err = initFailed(backend, err)
		reportInit(err)
		return err
	}

	g := &ProcessGroup{rank: r, comm: comm, backend: backend}
	if err := r.endJoin(g); err != nil {
		_ = g.close()
		return err
	}
	refreshSoleRank()
	takeBack()
	g.watchLauncher()
	return nil
}

// connect is the rank's own part of InitProcessGroup: it resolves the settings, meets
// the other ranks, and makes the communicator.
func (r *rank) connect(m *rendezvous, backend string, opts []InitOption) (*ccl.Communicator, error) {
	if r.job == solo {
		if err := solo.identify(); err != nil {
			if misspelt := config.CheckEnvironment(os.Environ()); misspelt != nil {
				err = misspelt // the launcher's variables lack it
			}
			return nil, err
		}
	}

	var o initOptions
	for _, opt := range opts {
		if opt.set != nil {
			opt.set(&o)
		}
	}

	err := checkBackend(backend)
	var settings *config.Settings
	var medium transport.Provider
	if err == nil {
		settings, medium, err = o.resolve(r.job)
	}

	if logger, invalid := requestedLogger(); invalid != nil && err == nil {
		err = invalid
	} else if o.logger == nil {
		o.logger = logger
	}
	if err != nil {
		if r.job.launched != nil {
			reportInit(initFailed(backend, err)) // before the peers learn of it
			m.announceFailure(medium, err, cmp.Or(o.timeout, announceTimeout))
		}
		return nil, err
	}
	o.logFindings(r, settings, medium.Name)
	if r.job.launched != nil {
		_ = launchenv.SendBuild(os.Getenv) // a launcher that does not learn it cannot warn
	}
	endpoint, err := m.joinRanks(r, medium, settings.Timeout())
	if isUnavailable(err) {
		err = settings.TransportError(err)
	}

	if err != nil {
		return nil, err
	}
	options := []ccl.Option{ccl.WithSelector(settings), ccl.WithLogger(o.logger), ccl.WithFailures(r.callFailed)}
	options = append(options, o.recording...)
	comm, err := ccl.New(r.job.ctx, endpoint, options...)
	if failed, ok := errors.AsType[*InitializationFailedError](err); ok {
		err = failed.Err // InitProcessGroup adds its own wrapper
	}
	if err == nil && r.job.launched != nil {
		_ = launchenv.SendTransport(os.Getenv, medium.Name) // a launcher that does not learn it misses nothing else
	}
	return comm, err
}

// logFindings logs the options that are ignored, and what is odd about the configuration.
func (o *initOptions) logFindings(r *rank, settings *config.Settings, medium string) {
	if o.logger == nil {
		return
	}
	if l := r.job.launched; l != nil && l.Apart != "" && medium == tcp.Name && launchenv.IsOpen(os.Getenv) {
		o.logger.Warn("dist: GOCCL_SECRET=none: whoever reaches a rank while the ranks connect may join the job", "rank", r.number)
	}
	for _, option := range o.ignored {
		o.logger.Info("dist: InitProcessGroup ignores an option: the configuration and dist.Spawn or the launcher decide",
			"option", option, "rank", r.number, "ranks", r.job.size)
	}
	if r.number > 0 {
		return // rank 0 has the same findings
	}
	for _, f := range settings.Findings() {
		o.logger.Info("dist: a finding about the rules of the configuration", "at", f.Origin, "finding", f.Message)
	}
}

// announceTimeout bounds announceFailure if the configured timeout is unknown.
const announceTimeout = time.Minute

// resolve loads the configuration, makes the settings for the job and chooses the transport. If it
// fails, medium is the transport that an option or GOCCL_TRANSPORT names, if any.
func (o *initOptions) resolve(j *job) (settings *config.Settings, medium transport.Provider, err error) {
	if medium, err = j.requested(o.transport); err != nil {
		return nil, medium, err
	}
	if err := config.CheckEnvironment(os.Environ()); err != nil {
		return nil, medium, err
	}

	if err := o.resolveFlight(); err != nil {
		return nil, medium, err
	}
	if _, err := boolVariable(watchVariable, true); err != nil {
		return nil, medium, err
	}
	cfg, err := o.load(j)
	if err != nil {
		return nil, medium, err
	}

	settings, err = cfg.Resolve(config.Request{
		Algorithm: o.algorithm,
		Transport: o.transport,
		Timeout:   o.timeout,
		Ranks:     j.size,
		RanksFrom: j.ranksFrom(cfg, o.algorithm),
	})
	if err != nil {
		return nil, medium, err
	}
	if medium, err = j.choose(settings.Transport()); err != nil {
		err = settings.TransportError(err)
	}
	return settings, medium, err
}

// ranksFrom describes where the number of ranks comes from. If the process is one rank
// by default, it adds how to start the configured number.
func (j *job) ranksFrom(cfg *config.Config, algorithm string) string {
	if n, _, ok := cfg.WorldSize(algorithm); ok && j == solo && j.launched == nil {
		return fmt.Sprintf("%s (call InitProcessGroup inside dist.Spawn, or start the program with goccl run -n %d)", j.from, n)
	}
	return j.from
}

// load returns the configuration of the options, else the job's, else the process's.
func (o *initOptions) load(j *job) (*config.Config, error) {
	switch {
	case o.configured && o.config == nil:
		return nil, &InvalidArgumentError{Operation: "dist.init_process_group", Message: "the configuration of dist.WithConfig is nil"}
	case o.configured:
		return o.config.WithEnvironment(os.Getenv)
	case o.filed:
		return loadConfig(o.file)
	case j.config != nil:
		return j.config, nil
	default:
		return config.Find()
	}
}

// loadConfig reads the file path. Environment variables override it.
func loadConfig(path string) (*config.Config, error) {
	c, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	return c.WithEnvironment(os.Getenv)
}

// instead has a hint for each backend name of other libraries.
var instead = map[string]string{
	"":       "the name is required",
	"nccl":   "goccl has no GPU backend; tensors are slices in main memory",
	"gloo":   "\"ccl\" replaces it on CPUs",
	"mpi":    "\"ccl\" uses MPI between nodes, as transport mpi",
	"ucc":    "\"ccl\" replaces it on CPUs",
	"oneccl": "it belongs to another library",
}

// backendName is the only backend.
const backendName = "ccl"

func checkBackend(name string) error {
	if name == backendName {
		return nil
	}
	hint := `use dist.InitProcessGroup("ccl"), goccl's own backend and not oneCCL`
	if why, ok := instead[name]; ok {
		hint = why + "; " + hint
	}
	return &InvalidBackendError{Requested: name, Available: []string{backendName}, Hint: hint}
}

// initFailed wraps an error of InitProcessGroup, except an invalid backend and an error
// that is already wrapped.
func initFailed(backend string, err error) error {
	switch err.(type) { //nolint:errorlint // another rank's error is wrapped
	case *InvalidBackendError, *InitializationFailedError:
		return err
	}
	return &InitializationFailedError{Backend: backend, Err: err}
}

// DestroyProcessGroup removes the caller's rank from its default process group and from all groups
// made of it; with WithGroup of another group, from that group alone.
//
// It does not wait for other ranks: a peer that still needs the rank gets *PeerLostError.
// Unfinished Works are dropped; *UnfinishedError counts them unless their group has failed. Without
// a group the error is ErrNotInitialized, in a goroutine without a rank ErrUnbound.
//
// InitProcessGroup can be called again afterwards, any number of times. The exception is transport
// mpi without Spawn: there DestroyProcessGroup waits for the other processes and ends MPI, which
// does not start twice in a process. Transport tcp waits for them too, but not for more than 10 s.
func DestroyProcessGroup(opts ...CallOption) error {
	g, err := merge(opts).target()
	if err != nil {
		return err
	}
	groups := g.rank.leave(g)
	if len(groups) == 0 { // another goroutine has destroyed it
		return notInitialized()
	}
	if g.isDefault() && g.rank.job.launched != nil {
		_ = launchenv.SendLeft(os.Getenv) // before the peers learn of it
	}

	var errs []error
	if g.isDefault() {
		errs = append(errs, g.writeFlightAtEnd())
	}
	for _, g := range groups {
		errs = append(errs, g.close())
	}
	refreshSoleRank()
	if g.isDefault() && g.rank.job == solo {
		errs = append(errs, solo.leaveTransport(g.rank.hasFailed()))
	}
	return errors.Join(errs...)
}
