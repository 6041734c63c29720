package sweep

import (
	"bytes"
	_ "embed"
	"html/template"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/chart"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

//go:embed report.html
var page string

var reportTemplate = template.Must(template.New("report").Parse(page))

// Report makes a self-contained HTML document of the results of a sweep: pictures, tables,
// the machine, the configuration with the given settings, and the sweep file.
func Report(f *File, d *measure.Document, settings *config.Settings) ([]byte, error) {
	about := struct {
		*File
		*measure.Document
		When     string
		Ranks    int // of the settings
		Settings []config.Setting
		Sections []reportSection
		Wrong    int // rows
	}{File: f, Document: d, When: d.Date.Format(time.RFC1123), Ranks: settings.WorldSize(), Settings: settings.Values()}
	index := map[measure.Case]int{}
	for _, r := range d.Results {
		i, known := index[r.Section()]
		if !known {
			i = len(about.Sections)
			index[r.Section()] = i
			about.Sections = append(about.Sections, reportSection{})
		}
		about.Sections[i].results = append(about.Sections[i].results, r)
		for _, row := range r.Rows {
			if row.Errors > 0 {
				about.Wrong++
			}
		}
	}
	for i := range about.Sections {
		if err := about.Sections[i].fill(); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	if err := reportTemplate.Execute(&b, about); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// reportSection is one section of the results.
type reportSection struct {
	results []measure.Result
	Title   string
	Picture template.HTML // an SVG element, or ""
	Entries []string
	Rows    []reportRow
}

// reportRow is one length.
type reportRow struct {
	Size, Count                             string
	OwnCopy, PeerCopy, Floor, Barrier, Core string // medians
	Cells                                   []reportCell
}

// reportCell is the result of one entry.
type reportCell struct {
	P50, P99, BusBW, XPeer, XFloor string
	Refused                        string
	Errors                         int
	Fastest                        bool
}

func (s *reportSection) fill() error {
	s.Title = s.results[0].Title()
	if s.results[0].Transport != "" {
		s.Title += " over " + s.results[0].Transport
	}
	for _, row := range s.results[0].Algorithms() {
		name := row.Entry
		if name == "" {
			name = row.Library
		}
		s.Entries = append(s.Entries, name)
	}
	for _, r := range s.results {
		s.Rows = append(s.Rows, newReportRow(r))
	}
	if s.results[0].Bytes == 0 {
		return nil
	}
	picture, err := chart.SVG(s.results)
	if err != nil {
		return nil // all entries are rejected; the table shows it
	}
	_, element, _ := bytes.Cut(picture, []byte("?>")) // HTML has no XML declarations
	s.Picture = template.HTML(element)
	return nil
}

func newReportRow(r measure.Result) reportRow {
	yardstick := func(name string) string { return measure.Digits(r.Yardstick(name).P50, 4) }
	row := reportRow{
		Size: "-", Count: "-",
		OwnCopy: yardstick(measure.OwnCopy), PeerCopy: yardstick(measure.PeerCopy),
		Floor:   measure.Digits(r.Floor().P50, 4),
		Barrier: yardstick(measure.Barrier), Core: yardstick(measure.CoreToCore),
	}
	if r.Bytes > 0 {
		row.Size, row.Count = ccl.ByteSize(r.Bytes).String(), measure.Digits(float64(r.Count()), 1)
	}
	fastest := 0.0
	for _, a := range r.Algorithms() {
		if a.P50 > 0 && (fastest == 0 || a.P50 < fastest) {
			fastest = a.P50
		}
	}
	for _, a := range r.Algorithms() {
		row.Cells = append(row.Cells, reportCell{
			P50: measure.Digits(a.P50, 4), P99: measure.Digits(a.P99, 4), BusBW: measure.Digits(a.BusBW, 3), XPeer: measure.Multiple(a.XPeerCopy), XFloor: measure.Multiple(a.XFloor),
			Refused: a.Refused, Errors: a.Errors, Fastest: a.P50 == fastest && fastest > 0,
		})
	}
	return row
}
