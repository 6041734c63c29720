package measure

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/topology"
)

// Library is the library in rows of algorithms; rows of yardsticks have
// Yardstick.
const (
	Library   = "goccl"
	Yardstick = "yardstick"
)

// The names of the yardsticks; see the package comment.
const (
	OwnCopy    = "own_copy"
	PeerCopy   = "peer_copy"
	Floor      = "floor"
	Backward   = "backward"
	Barrier    = "barrier"
	CoreToCore = "core_to_core"
)

// Row is the measurement of one subject of a case. What was not measured
// is 0.
type Row struct {
	Library string `json:"library"`
	Entry   string `json:"entry"`             // of the configuration, Auto, or AllEntries; "" of a barrier; a yardstick's name
	Ran     string `json:"ran,omitempty"`     // the entry that the rules chose for auto
	Params  string `json:"params,omitempty"`  // of the entry, if they are varied: "chunk=64KiB"
	Memory  string `json:"memory,omitempty"`  // of an algorithm's buffers: Private or Alloc
	Refused string `json:"refused,omitempty"` // why the entry cannot do the call, or the job not measure the case
	Failed  string `json:"failed,omitempty"`  // with which error the measurement ended
	Calls   int    `json:"calls"`
	// From the arrival of the last rank until all have returned, in microseconds.
	P50 float64 `json:"p50_us"`
	P90 float64 `json:"p90_us"`
	P99 float64 `json:"p99_us"`
	Min float64 `json:"min_us"`
	// Whole is the median of the whole call on the rank that is in it longest, with
	// the wait for the other ranks.
	Whole float64 `json:"whole_us"`
	// CPU is how many cores the ranks used meanwhile, user and system, the work around the
	// calls included; 0: unknown.
	CPU float64 `json:"cpu_cores"`
	// Of the median, in GB/s; of a yardstick as if it were the collective.
	AlgBW float64 `json:"algbw_gbs"`
	BusBW float64 `json:"busbw_gbs"`
	// The median divided by a yardstick's median.
	XOwnCopy  float64 `json:"x_own_copy"`
	XPeerCopy float64 `json:"x_peer_copy"`
	XFloor    float64 `json:"x_floor"`
	// Of a workload: how much longer a step takes than backward, in microseconds; the share of
	// communication that AtEnd adds and this row does not; the median divided by AtEnd's.
	Added  float64 `json:"added_us,omitempty"`
	Hidden float64 `json:"hidden,omitempty"`
	XAtEnd float64 `json:"x_at_end,omitempty"`
	Errors int     `json:"errors"` // wrong elements, over all calls and ranks
}

// row returns the row of an entry without measurements.
func (e chosen) row() Row {
	return Row{Library: Library, Entry: e.entry, Params: e.params, Memory: e.memory, Ran: e.ran, Refused: e.refused}
}

// Result is the measurement of a case: yardsticks, then algorithms.
type Result struct {
	Case
	Transport string `json:"transport"`
	Topology  string `json:"topology,omitempty"` // its kind, with extents if they were asked for
	Config    string `json:"config,omitempty"`   // the configuration file
	// OtherLoad is how many of the ranks' cores other programs used, as far as known: 0 on a quiet
	// machine, 1 if another program runs all the time.
	OtherLoad float64 `json:"company"`
	Rows      []Row   `json:"rows"`
}

// Section is what the results of a table, or of a picture, have in common.
type Section struct {
	Case                        // without its length
	Transport, Topology, Config string
}

// Section returns the section of the result.
func (r Result) Section() Section {
	return Section{r.Case.Section(), r.Transport, r.Topology, r.Config}
}

// Split splits results by a key, in the order of the first of each.
func Split[K comparable](results []Result, key func(Result) K) (all [][]Result) {
	index := map[K]int{}
	for _, r := range results {
		i, known := index[key(r)]
		if !known {
			i = len(all)
			index[key(r)] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], r)
	}
	return all
}

// location is the transport, and a topology other than a ring: " over local".
func (r Result) location() (text string) {
	if r.Transport != "" {
		text += " over " + r.Transport
	}
	if r.Topology != "" && r.Topology != topology.Ring1D.String() {
		text += ", " + r.Topology
	}
	return text
}

// Name returns the row's entry with its parameters and its memory, unless that is Private.
func (row Row) Name() string {
	parts := []string{row.Entry, row.Params}
	if row.Memory == Alloc {
		parts = append(parts, Alloc)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// Yardstick returns the row of a yardstick, a zero Row if it was not measured.
func (r Result) Yardstick(name string) Row { return r.row(Yardstick, name) }

// Row returns the row of an entry, a zero Row if there is none.
func (r Result) Row(entry string) Row { return r.row(Library, entry) }

func (r Result) row(library, entry string) Row {
	for _, row := range r.Rows {
		if row.Library == library && row.Entry == entry {
			return row
		}
	}
	return Row{}
}

// Algorithms returns the rows other than yardsticks.
func (r Result) Algorithms() []Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Library == Yardstick })
}

// Floor returns the row of the yardstick with only the memory traffic of the case; it can
// be the own copy.
func (r Result) Floor() Row { return r.Yardstick(r.floor()) }

// compared returns the rows with bandwidths and ratios.
func (c Case) compared(rows []Row) []Row {
	r := Result{Case: c, Rows: rows}
	if IsWorkload(c.Collective) {
		ofSteps(r)
		return rows
	}

	self, peer, floor := r.Yardstick(OwnCopy), r.Yardstick(PeerCopy), r.Floor()
	for i := range rows {
		row := &rows[i]
		if c.Bytes == 0 || row.Library == Yardstick && (row.Entry == Barrier || row.Entry == CoreToCore) {
			continue
		}
		row.AlgBW, row.BusBW = c.Bandwidth(row.P50)
		row.AlgBW, row.BusBW = rounded(row.AlgBW), rounded(row.BusBW)
		row.XOwnCopy, row.XPeerCopy = ratio(row.P50, self.P50), ratio(row.P50, peer.P50)
		row.XFloor = ratio(row.P50, floor.P50)
	}
	return rows
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return rounded(a / b)
}

// rounded returns x with four significant digits.
func rounded(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	return x
}

// Document is the content of a file of `goccl bench --json`.
type Document struct {
	Version int       `json:"version"` // of this format: 1
	Date    time.Time `json:"date"`
	Machine Machine   `json:"machine"`
	Config  Config    `json:"config"`
	Results []Result  `json:"results"`
}

// Config is the configuration in use.
type Config struct {
	File    string `json:"file"`
	FoundBy string `json:"found_by"` // "--config", "GOCCL_CONFIG", "working directory" or "built in"
}

// Heading is the title of a result's section in the document: with its configuration, if others of
// the document have another one.
func (d *Document) Heading(r Result) string { return r.Title() + d.Location(r) }

// Location is the part of a heading that says where a result was measured.
func (d *Document) Location(r Result) string {
	text := r.location()
	if r.Config != "" && r.Config != d.Config.File {
		text += ", " + r.Config
	}
	return text
}

// formatVersion is Document.Version.
const formatVersion = 1

// NewDocument returns an empty document with the current time and machine.
func NewDocument(config Config) *Document {
	return &Document{Version: formatVersion, Date: time.Now().UTC().Truncate(time.Second), Machine: ThisMachine(), Config: config, Results: []Result{}}
}

// WriteFile writes the document as JSON.
func (d *Document) WriteFile(path string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o666)
}

// ReadFile reads a file of WriteFile.
func ReadFile(path string) (*Document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d Document
	if err = json.Unmarshal(text, &d); err == nil && d.Version != formatVersion {
		err = fmt.Errorf("its version is %d, and this program knows %d", d.Version, formatVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not what goccl bench --json writes: %w", path, err)
	}
	return &d, nil
}
