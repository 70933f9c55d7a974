// Says what the container runtime's own library makes of a node's files: one
// JSON object a line comes in, one goes out.
//
// The same program is built against several releases of the library.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	_ "go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker"
	_ "go.podman.io/image/v5/docker/archive"
	"go.podman.io/image/v5/docker/reference"
	_ "go.podman.io/image/v5/oci/archive"
	_ "go.podman.io/image/v5/oci/layout"
	_ "go.podman.io/image/v5/openshift"
	"go.podman.io/image/v5/pkg/shortnames"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	_ "go.podman.io/image/v5/sif"
	"go.podman.io/image/v5/signature"
	_ "go.podman.io/image/v5/tarball"
	"go.podman.io/image/v5/types"
)

// Files are those of a node: text by name.
type Files struct {
	// Main is registries.conf, unless there is none.
	Main *string `json:"main"`
	// DropIns are in registries.conf.d, Lookaside in registries.d.
	DropIns   map[string]string `json:"dropIns"`
	Lookaside map[string]string `json:"lookaside"`
	// Policy is policy.json, unless it is not asked for.
	Policy *string `json:"policy"`
	// Names are images as a pod names them, with a tag or a digest.
	Names []string `json:"names"`
}

// Answer says why something is not loaded, and where images are looked for.
type Answer struct {
	Registries string `json:"registries"`
	Lookaside  string `json:"lookaside"`
	Policy     string `json:"policy"`
	// Pulls are in the order of the names: the sources that are asked in turn.
	Pulls [][]Source `json:"pulls"`
	// Helpers are asked for credentials.
	Helpers []string `json:"helpers"`
}

// Source is a place that is asked for an image.
type Source struct {
	Name     string `json:"name"`
	Insecure bool   `json:"insecure"`
	// Namespace is what a proxy of registries is asked for.
	Namespace string `json:"namespace"`
}

func main() {
	root, err := os.MkdirTemp("", "runtime-oracle")
	if err != nil {
		log.Fatal(err)
	}
	err = serve(root)
	os.RemoveAll(root)
	if err != nil {
		log.Fatal(err)
	}
}

func serve(root string) error {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for number := 0; in.More(); number++ {
		var files Files
		if err := in.Decode(&files); err != nil {
			return fmt.Errorf("question %d: %w", number, err)
		}
		answer, err := ask(filepath.Join(root, "node"), files)
		if err != nil {
			return fmt.Errorf("question %d: %w", number, err)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// ask writes the files, and has the library read them.
func ask(place string, files Files) (Answer, error) {
	if err := os.RemoveAll(place); err != nil {
		return Answer{}, err
	}
	dropIns, lookaside := filepath.Join(place, "registries.conf.d"), filepath.Join(place, "registries.d")
	for dir, texts := range map[string]map[string]string{dropIns: files.DropIns, lookaside: files.Lookaside} {
		if err := write(dir, texts); err != nil {
			return Answer{}, err
		}
	}
	text := ""
	if files.Main != nil {
		text = *files.Main
	}
	if err := write(place, map[string]string{"registries.conf": text}); err != nil {
		return Answer{}, err
	}
	// CRI-O never asks which registry a short name means: it asks all of them.
	disabled := types.ShortNameModeDisabled
	system := &types.SystemContext{
		SystemRegistriesConfPath:    filepath.Join(place, "registries.conf"),
		SystemRegistriesConfDirPath: dropIns,
		RegistriesDirPath:           lookaside,
		UserShortNameAliasConfPath:  filepath.Join(place, "aliases", "none.conf"),
		ShortNameMode:               &disabled,
	}
	return read(system, files), nil
}

func write(dir string, texts map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func read(system *types.SystemContext, files Files) Answer {
	answer := Answer{Pulls: make([][]Source, len(files.Names))}
	if files.Policy != nil {
		if _, err := signature.NewPolicyFromBytes([]byte(*files.Policy)); err != nil {
			answer.Policy = err.Error()
		}
	}
	// Whichever image it is asked for, all files are read.
	if _, err := lookasideOf(system, "any.example.com/image:1"); err != nil {
		answer.Lookaside = err.Error()
	}
	sysregistriesv2.InvalidateCache()
	if _, err := sysregistriesv2.GetRegistries(system); err != nil {
		answer.Registries = err.Error()
		return answer
	}
	answer.Helpers, _ = sysregistriesv2.CredentialHelpers(system)
	isSigned := len(files.Lookaside) > 0
	for number, name := range files.Names {
		answer.Pulls[number] = pull(system, name, isSigned)
	}
	return answer
}

// lookasideOf is where signatures of an image are, which each pull asks for.
func lookasideOf(system *types.SystemContext, name string) (string, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", err
	}
	image, err := docker.NewReference(named)
	if err != nil {
		return "", err
	}
	url, err := docker.SignatureStorageBaseURL(system, image, false)
	if err != nil {
		return "", err
	}
	if !slices.Contains([]string{"file", "http", "https"}, url.Scheme) {
		return "", fmt.Errorf("signatures are not read from %q", url.Scheme)
	}
	return url.String(), nil
}

// pull says where an image is looked for, in order. Where signatures are is
// asked only if something is said of that: the library reads all files each time.
func pull(system *types.SystemContext, name string, isSigned bool) []Source {
	sources := []Source{}
	resolved, err := shortnames.Resolve(system, name)
	if err != nil {
		return sources
	}
	for _, candidate := range resolved.PullCandidates {
		sources = append(sources, sourcesOf(system, candidate.Value, isSigned)...)
	}
	return sources
}

func sourcesOf(system *types.SystemContext, image reference.Named, isSigned bool) []Source {
	registry, err := sysregistriesv2.FindRegistry(system, image.Name())
	if err != nil {
		return nil
	}
	if registry == nil {
		own := sysregistriesv2.Endpoint{Location: image.String()}
		registry = &sysregistriesv2.Registry{Endpoint: own, Prefix: image.String()}
	}
	places, err := registry.PullSourcesFromReference(image)
	if err != nil {
		return nil
	}
	sources := []Source{}
	for _, place := range places {
		// A place with a tag and a digest fails, and the next one is asked.
		if _, err := docker.NewReference(place.Reference); err != nil {
			continue
		}
		// Such as of a_b.io/app, all of which is a path: there is nobody to ask.
		if reference.Domain(place.Reference) == "" {
			continue
		}
		// Whoever has the image is asked for its signatures, and nobody after that.
		if isSigned {
			if _, err := lookasideOf(system, place.Reference.String()); err != nil {
				return nil
			}
		}
		found, err := sysregistriesv2.FindRegistry(system, place.Reference.Name())
		if err != nil || (found != nil && found.Blocked) {
			continue
		}
		sources = append(sources, Source{
			Name:      place.Reference.String(),
			Insecure:  place.Endpoint.Insecure,
			Namespace: namespaceProxy(place.Endpoint),
		})
	}
	return sources
}
