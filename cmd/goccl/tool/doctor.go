package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/internal/launcher"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

// doctorCommand is `goccl doctor`.
type doctorCommand struct {
	Clean bool `help:"Only remove what dead jobs of this user have left in /dev/shm and TMPDIR, and list it."`
	JSON  bool `name:"json" help:"Print one JSON document."`
	nodeFlags
}

// Validate checks the flags.
func (c *doctorCommand) Validate() error {
	return c.check("goccl doctor --nnodes 2 --node-rank 0 --rdzv-endpoint node-a:29500")
}

// Run runs the command. The first interrupt ends it, after it has removed its traces.
func (c *doctorCommand) Run(ctx context.Context, stdout io.Writer, stderr stderr) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	defer stop()
	if c.Clean {
		found, err := leftovers()
		if err != nil {
			return err
		}
		return c.clean(stdout, found)
	}

	p := findingsText{out: stdout}
	e := newExamination(func(f doctor.Finding) {
		if !c.JSON && ctx.Err() == nil {
			p.write(f)
		}
	})

	if c.Nodes > 1 {
		if err := c.examineNodes(ctx, stderr, e.add); err != nil {
			return err
		}
	} else {
		e.examine(ctx)
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return errors.Join(show(stdout, c.JSON, e, func(io.Writer) error { return p.end(e.Findings) }), e.judge())
}

// examination is the result of `goccl doctor`, and its JSON.
type examination struct {
	Date       time.Time        `json:"date"`
	Machine    measure.Machine  `json:"machine"`
	Findings   []doctor.Finding `json:"findings"`
	Config     *measure.Config  `json:"config,omitempty"` // nil if it is invalid
	Calls      []*call          `json:"calls"`            // two typical ones, as in goccl explain
	Yardsticks []measure.Result `json:"yardsticks"`       // as in goccl bench
	Leftovers  []shm.Leftover   `json:"leftovers"`

	report func(doctor.Finding) // is called for each finding
}

// newExamination returns an examination that has found nothing, and will report what it finds.
func newExamination(report func(doctor.Finding)) *examination {
	return &examination{
		report: report,
		Date:   time.Now().UTC().Truncate(time.Second), Machine: measure.ThisMachine(),
		Calls: []*call{}, Yardsticks: []measure.Result{}, Leftovers: []shm.Leftover{},
	}
}

// examine makes all checks of this machine.
func (e *examination) examine(ctx context.Context) {
	for _, f := range doctor.Machine(e.Machine, "", os.Getenv) {
		e.add(f)
	}

	startedBy, ranks := doctor.Launcher(os.Getenv)
	doctor.Processes(ctx, "", e.add, max(2, e.Machine.Cores, ranks), 2, 8)
	found, err := leftovers()
	e.add(doctor.Leftovers(found, err))
	e.Leftovers = append(e.Leftovers, found...)
	if ranks == 0 { // under a launcher the job itself holds its cores
		e.add(doctor.Pinning(cores.Survey()))
	}

	e.add(startedBy)
	e.explain(ranks)
	if ranks > 0 || startedBy.Verdict == doctor.Problem {
		e.add(doctor.Finding{Part: doctor.PartYardsticks, Name: "all", Verdict: doctor.Note,
			Says: "not measured under a launcher: all of its ranks would measure at once", Do: "run goccl doctor without the launcher"})
		return
	}
	e.Yardsticks = append(e.Yardsticks, doctor.Yardsticks(ctx, "", e.add)...)
}

func (e *examination) add(f doctor.Finding) {
	e.Findings = append(e.Findings, f)
	e.report(f)
}

func (e *examination) found(name string, v doctor.Verdict, says, do string) {
	e.add(doctor.Finding{Part: doctor.PartConfiguration, Name: name, Verdict: v, Says: says, Do: do})
}

// explain adds the configuration, and explains two calls that training makes all the
// time: of one number, such as a loss, and of a bucket of gradients. ranks is the
// launcher's number of ranks, 0 without a launcher.
func (e *examination) explain(ranks int) {
	underLauncher := ranks > 0
	cfg, found, err := loadConfig("")
	from := fmt.Sprintf("a launcher has started %d ranks", ranks)
	if err == nil && !underLauncher {
		ranks = defaultRanks(cfg, "", 2)
		from = fmt.Sprintf("dist.Spawn would host %d", ranks)
	}
	var settings *config.Settings
	if err == nil {
		settings, err = cfg.Resolve(config.Request{Ranks: ranks, RanksFrom: from})
	}

	var r *explanation
	if err == nil {
		asked := explainCommand{Collective: []ccl.Collective{ccl.CollAllReduce}, Bytes: []measure.Size{4, 25 << 20}, Ranks: []int{ranks}}
		r, err = asked.explain()
	}
	if err != nil {
		e.found("ccl.yaml", doctor.Problem, err.Error(), "correct it, or see `goccl explain`: dist fails to initialize with it")
		return
	}

	e.Config = &found
	e.found("ccl.yaml", doctor.OK, fmt.Sprintf("%s (%s)", found.File, found.FoundBy), "")
	switch configured := settings.Transport(); {
	case underLauncher && configured == local.Name:
		e.found("transport", doctor.Problem, "the configuration has local, which connects goroutines, but a launcher has started processes", "configure shm, or auto")
	case !underLauncher && configured == shm.Name:
		e.found("transport", doctor.Note, "the configuration has shm, which connects processes, but no launcher has started this one", "start ranks with goccl run, or configure auto")
	}

	for _, f := range r.Findings {
		e.found("rules", doctor.Note, f.Origin+": "+f.Message, "see `goccl explain --why`")
	}
	for _, c := range r.Worlds[0].Calls {
		if underLauncher {
			c.Transport = shm.Name // of auto; the choice does not depend on it
		}
		e.Calls = append(e.Calls, c)
		name := fmt.Sprintf("%v %v", c.Collective, ccl.ByteSize(c.Bytes))
		on := fmt.Sprintf("%s, %v, %s: ", counted(c.Ranks, "rank"), c.DType, c.Op)

		switch {
		case c.Refused != "":
			e.found(name, doctor.Note, on+withoutShape(c.Collective.String(), c.Refused), "see `goccl explain --why`")
		case c.Note != "":
			e.found(name, doctor.OK, on+c.Note, "")
		default:
			e.found(name, doctor.OK, fmt.Sprintf("%s%s, chosen by %s", on, c.Entry, c.ChosenBy), "")
		}
	}
}

// judge returns an error if there are problems.
func (e *examination) judge() error {
	switch n := doctor.Count(e.Findings, doctor.Problem); n {
	case 0:
		return nil
	case 1:
		return errors.New("1 problem keeps ranks from working")
	default:
		return fmt.Errorf("%d problems keep ranks from working", n)
	}
}

// removal is the result of `goccl doctor --clean`, and its JSON.
type removal struct {
	Removed []shm.Leftover `json:"removed"`
	Kept    []kept         `json:"kept"`
}

type kept struct {
	shm.Leftover
	Why string `json:"why"`
}

// leftovers returns what dead jobs of this user have left: memory, and reports, which are of 0
// ranks.
func leftovers() ([]shm.Leftover, error) {
	all, err := shm.Leftovers()
	for _, dir := range launcher.Leftovers() {
		if info, gone := os.Stat(dir); gone == nil {
			all = append(all, shm.Leftover{Path: dir, Job: info.Name(), Made: info.ModTime()})
		}
	}
	return all, err
}

// remove removes a leftover.
func remove(l shm.Leftover) error {
	if l.Ranks == 0 {
		return os.RemoveAll(l.Path)
	}
	return l.Remove()
}

func (c *doctorCommand) clean(stdout io.Writer, found []shm.Leftover) error {
	r := removal{Removed: []shm.Leftover{}, Kept: []kept{}}
	for _, l := range found {
		if err := remove(l); err != nil {
			r.Kept = append(r.Kept, kept{l, err.Error()})
			continue
		}
		r.Removed = append(r.Removed, l)
	}

	err := show(stdout, c.JSON, r, r.write)
	if n := len(r.Kept); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d could not be removed", n, len(found)))
	}
	return err
}

func (r removal) write(stdout io.Writer) error {
	var b strings.Builder
	for _, l := range r.Removed {
		fmt.Fprintf(&b, "removed %s\n", described(l))
	}
	for _, l := range r.Kept {
		fmt.Fprintf(&b, "kept %s: %s\n", described(l.Leftover), l.Why)
	}
	if b.Len() == 0 {
		b.WriteString("nothing to remove: this user has no leftovers of dead jobs\n")
	}
	_, err := io.WriteString(stdout, b.String())
	return err
}

func described(l shm.Leftover) string {
	if l.Ranks == 0 {
		return fmt.Sprintf("%s: reports of job %s, whose launcher was killed", l.Path, l.Job)
	}
	return fmt.Sprintf("%s: %s, of job %s of %d ranks, made at %s by pid %d",
		l.Path, doctor.Amount(float64(l.Bytes)), l.Job, l.Ranks, l.Made.Format(time.DateTime), l.PID)
}
