package tool

import (
	"os"

	"github.com/goccl/goccl/ccl"
)

// configFile is the configuration in use.
type configFile struct {
	File    string `json:"file"`
	FoundBy string `json:"found_by"` // "--config", "GOCCL_CONFIG", "working directory" or "built in"
}

// loadConfig loads the configuration at path, or if that is empty the one that
// programs find.
func loadConfig(path string) (config *ccl.Config, found configFile, err error) {
	if path != "" {
		found.FoundBy = "--config"
		if config, err = ccl.LoadConfig(path); err == nil {
			config, err = config.WithEnvironment(os.Getenv)
		}
	} else if config, err = ccl.FindConfig(); err == nil {
		switch {
		case os.Getenv("GOCCL_CONFIG") != "":
			found.FoundBy = "GOCCL_CONFIG"
		case config.File() == ccl.DefaultConfig().File():
			found.FoundBy = "built in"
		default:
			found.FoundBy = "working directory"
		}
	}
	if err != nil {
		return nil, configFile{}, err
	}
	found.File = config.File()
	return config, found, nil
}
