package launchenv

import "path/filepath"

// Ended is a rank whose processes have ended, as its launcher tells the others. A group of all
// ranks can no longer be made.
type Ended struct {
	Version int    `json:"version"` // 1
	Job     string `json:"job"`     // its key
	Rank    int    `json:"rank"`
	PID     int    `json:"pid"`
	Host    string `json:"host,omitempty"` // unless it is that of the ranks that are told
}

// endedName is the name of the file beside those of the ranks' results.
const endedName = "ended"

// Send writes e to the directory of the ranks' results.
func (e *Ended) Send(dir string) error { return replace(filepath.Join(dir, endedName), e) }

// ReadEnded returns the rank that has ended, or nil if the launcher tells of none.
func ReadEnded(getenv func(string) string) *Ended {
	result := getenv(ResultVariable)
	if result == "" {
		return nil
	}
	e, _ := readFile[Ended](filepath.Join(filepath.Dir(result), endedName), "the end of a rank") // an unreadable one says nothing
	return e
}
