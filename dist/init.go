package dist

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	// The algorithms that ccl.yaml can name without further ado.
	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
)

// InitOption is an option of InitProcessGroup. Of two of a kind the later
// holds.
type InitOption struct {
	config     *ccl.Config
	configured bool
	file       string
	filed      bool
	algorithm  string
	transport  string
	timeout    time.Duration
	logger     *slog.Logger
	ignored    string
}

// WithConfig takes the configuration from c, which beats every file. A nil c
// makes InitProcessGroup fail.
func WithConfig(c *ccl.Config) InitOption { return InitOption{config: c, configured: true} }

// WithConfigFile takes the configuration from the file path, in the format of
// ccl.yaml.
func WithConfigFile(path string) InitOption { return InitOption{file: path, filed: true} }

// WithAlgorithm takes the place of defaults.algorithm: an entry of ccl.yaml's
// algorithms, or "auto". The empty name leaves it as configured.
func WithAlgorithm(entry string) InitOption { return InitOption{algorithm: entry} }

// WithTransport takes the place of defaults.transport: "auto", "local", which
// connects goroutines of one process, or "shm", which connects the processes that
// a launcher has started. The empty name leaves it as configured.
func WithTransport(name string) InitOption { return InitOption{transport: name} }

// WithTimeout takes the place of defaults.timeout, which bounds every wait for
// other ranks, that of InitProcessGroup included. 0 leaves it as configured, a
// negative one waits for ever.
func WithTimeout(d time.Duration) InitOption { return InitOption{timeout: d} }

// WithLogger tells l what happens to the group: options that are ignored, what
// ccl.Settings.Findings finds in its configuration, calls that have waited for
// half of their timeout. Without it nothing is logged.
func WithLogger(l *slog.Logger) InitOption { return InitOption{logger: l} }

// WithWorldSize is accepted for torch's sake and ignored, which the logger is
// told: ccl.yaml and Spawn, or the launcher, say how many ranks there are.
func WithWorldSize(n int) InitOption { return InitOption{ignored: fmt.Sprintf("WithWorldSize(%d)", n)} }

// WithRank is accepted for torch's sake and ignored, which the logger is told:
// Spawn or the launcher says which rank a goroutine is.
func WithRank(rank int) InitOption { return InitOption{ignored: fmt.Sprintf("WithRank(%d)", rank)} }

func mergeInit(opts []InitOption) (o InitOption, ignored []string) {
	for _, add := range opts {
		if add.configured {
			o.config, o.configured = add.config, true
		}
		if add.filed {
			o.file, o.filed = add.file, true
		}
		if add.algorithm != "" {
			o.algorithm = add.algorithm
		}
		if add.transport != "" {
			o.transport = add.transport
		}
		if add.timeout != 0 {
			o.timeout = add.timeout
		}
		if add.logger != nil {
			o.logger = add.logger
		}
		if add.ignored != "" {
			ignored = append(ignored, add.ignored)
		}
	}
	return o, ignored
}

// InitProcessGroup connects the ranks of the job to the default process group.
// The name of the backend is "ccl"; any other is *InvalidBackendError.
//
// It is collective: the n-th call of a rank waits for the n-th calls of all
// others, and either all succeed or all fail. It loads the configuration, finds
// the algorithms, resolves the world size, makes the topology, and connects the
// ranks, in this order; the first step that fails on any rank fails it on all,
// and nothing is left of it, so that a corrected second attempt works.
//
// The configuration comes from WithConfig, WithConfigFile, WithSpawnConfigFile, the
// environment's GOCCL_CONFIG, ./ccl.yaml or the one that is built in, whichever
// is there first. In whichever it is, GOCCL_ALGORITHM, GOCCL_TRANSPORT,
// GOCCL_TIMEOUT and GOCCL_WORLD_SIZE take the place of its defaults, and
// WithAlgorithm, WithTransport and WithTimeout the place of both (see
// ccl.Config.WithEnvironment). A variable that begins with GOCCL_ and that goccl does not
// know is an error, which names the nearest one. All ranks need the same values; the first
// key in which they differ is named.
//
// Processes that a launcher has started connect through shared memory. A rank
// that fails by a mistake of its own then still waits for the others, within the
// timeout, to tell them.
//
// Errors are *InitializationFailedError around one of: *ConfigError,
// *MissingConfigurationError (the configured world size is not the number of
// ranks, or variables of the launcher are missing), *BackendNotAvailableError (a
// transport that is not for these ranks), *MismatchError, *TimeoutError (with the
// ranks that did not call), *PeerLostError (a worker has returned without
// calling), the error of the context, or *AbortedError, which names the rank
// whose own error has one of the other forms. A rank that has a group already
// gets ErrAlreadyInitialized, a goroutine without a rank ErrUnbound; these two
// concern the caller alone.
func InitProcessGroup(backend string, opts ...InitOption) error {
	r, err := self()
	if err != nil {
		return err
	}
	a, err := r.begin()
	if err != nil {
		return err
	}
	comm, err := r.connect(a, backend, opts)
	if err := a.conclude(r, err); err != nil {
		if comm != nil {
			_ = comm.Close()
		}
		_ = r.settle(nil)
		err = initFailed(backend, err)
		reportInit(err)
		return err
	}
	g := &ProcessGroup{rank: r, comm: comm, backend: backend}
	if err := r.settle(g); err != nil {
		_ = g.close()
		return err
	}
	refreshAlone()
	takeBack()
	return nil
}

// connect is a rank's own part of an attempt: the installation steps of S4.7.
func (r *rank) connect(a *attempt, backend string, opts []InitOption) (*ccl.Communicator, error) {
	if r.job == solo {
		if err := solo.identify(); err != nil {
			if misspelt := ccl.CheckEnvironment(os.Environ()); misspelt != nil {
				err = misspelt // what the launcher's variables lack
			}
			return nil, err
		}
	}
	o, ignored := mergeInit(opts)
	err := checkBackend(backend)
	var settings *ccl.Settings
	if err == nil {
		settings, err = o.resolve(r.job)
	}
	if err != nil {
		if r.job.launched != nil {
			reportInit(initFailed(backend, err)) // before the peers hear of it
			a.excuse(err, cmp.Or(o.timeout, excuseTimeout))
		}
		return nil, err
	}
	if o.logger != nil {
		for _, option := range ignored {
			o.logger.Info("dist: InitProcessGroup ignores an option: the configuration and dist.Spawn or the launcher decide",
				"option", option, "rank", r.number, "ranks", r.job.size)
		}
		if r.number == 0 { // the others have the same
			for _, f := range settings.Findings() {
				o.logger.Info("dist: a finding about the rules of the configuration", "at", f.Origin, "finding", f.Message)
			}
		}
	}
	endpoint, err := a.meet(r, settings.Timeout())
	if err != nil {
		return nil, err
	}
	options := []ccl.Option{ccl.WithSettings(settings), ccl.WithLogger(o.logger), ccl.WithFailures(r.callFailed)}
	comm, err := ccl.New(r.job.ctx, endpoint, options...)
	if failed, ok := errors.AsType[*InitializationFailedError](err); ok {
		err = failed.Err // InitProcessGroup says it in its own words
	}
	return comm, err
}

// excuseTimeout takes the place of the timeout that could not be found out.
const excuseTimeout = time.Minute

// resolve makes the settings for the job: all of S4.7 that a rank does by itself.
func (o *InitOption) resolve(j *job) (*ccl.Settings, error) {
	if err := ccl.CheckEnvironment(os.Environ()); err != nil {
		return nil, err
	}
	config, err := o.load(j)
	if err != nil {
		return nil, err
	}
	settings, err := config.Resolve(ccl.Request{
		Algorithm: o.algorithm,
		Transport: o.transport,
		Timeout:   o.timeout,
		Ranks:     j.size,
		RanksFrom: j.ranksFrom(config, o.algorithm),
	})
	if err != nil {
		return nil, err
	}
	return settings, j.checkTransport(settings.Transport())
}

// ranksFrom says where the number of ranks comes from, and, in a process that is
// one rank because nobody said otherwise, how to get as many as are configured.
func (j *job) ranksFrom(config *ccl.Config, algorithm string) string {
	if n, _, ok := config.WorldSize(algorithm); ok && j == solo && j.launched == nil {
		return fmt.Sprintf("%s (call InitProcessGroup inside dist.Spawn, or start the program with goccl run -n %d)", j.from, n)
	}
	return j.from
}

// load returns the configuration that the options ask for, the job's where they
// ask for none, and else the one of the process.
func (o *InitOption) load(j *job) (*ccl.Config, error) {
	switch {
	case o.configured && o.config == nil:
		return nil, &InvalidArgumentError{Operation: "init_process_group", Message: "the configuration of dist.WithConfig is nil"}
	case o.configured:
		return o.config.WithEnvironment(os.Getenv)
	case o.filed:
		return loadConfig(o.file)
	case j.config != nil:
		return j.config, nil
	default:
		return ccl.FindConfig()
	}
}

// loadConfig reads a file of the program's choice. The environment still has its
// say: only options go before it.
func loadConfig(path string) (*ccl.Config, error) {
	c, err := ccl.LoadConfig(path)
	if err != nil {
		return nil, err
	}
	return c.WithEnvironment(os.Getenv)
}

// instead says for backends of other libraries what to use in their place.
var instead = map[string]string{
	"":       "the name has to be given",
	"nccl":   "there is none for GPUs; tensors are slices in main memory",
	"gloo":   "\"ccl\" is what takes its place on CPUs",
	"mpi":    "\"ccl\" needs no MPI",
	"ucc":    "\"ccl\" is what takes its place on CPUs",
	"oneccl": "it belongs to another library",
}

// backendName is the name of the one backend there is.
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

// initFailed wraps the error of an attempt. A backend that does not exist is not
// worth the words, and one error has them already.
func initFailed(backend string, err error) error {
	switch err.(type) { //nolint:errorlint // one that another rank had is worth them
	case *InvalidBackendError, *InitializationFailedError:
		return err
	}
	return &InitializationFailedError{Backend: backend, Err: err}
}

// DestroyProcessGroup takes the caller's rank out of its default process group, and
// of all that were made of it; with WithGroup, out of that group alone, unless it is
// the default one. It waits for nobody: a peer that still needs the rank gets
// *PeerLostError, and each Work that has not ended is dropped: *UnfinishedError counts
// them, if their group has not failed. It returns ErrNotInitialized if there is no group, and ErrUnbound
// in a goroutine without a rank. Afterwards InitProcessGroup can be called again,
// any number of times.
func DestroyProcessGroup(opts ...CallOption) error {
	g, err := merge(opts).target()
	if err != nil {
		return err
	}
	g.rank.leaves()
	if !g.isDefault() {
		g.disown()
		return g.close()
	}
	groups := g.rank.leave()
	if len(groups) == 0 { // another goroutine was faster
		return notInitialized()
	}
	var errs []error
	for _, g := range groups {
		errs = append(errs, g.close())
	}
	refreshAlone()
	return errors.Join(errs...)
}
