// Renders sets of mirror objects by OpenShift's own library, and says what the
// container runtime's own library reads of a registries.conf: one JSON object a
// line comes in, one goes out.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/containers/image/v5/pkg/sysregistriesv2"
	config "github.com/openshift/api/config/v1"
	operator "github.com/openshift/api/operator/v1alpha1"
	"github.com/openshift/runtime-utils/pkg/registries"
	"go.podman.io/image/v5/docker/reference"
	runtime "go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// Question asks for one of two things.
type Question struct {
	Render *Side `json:"render"`
	Read   *File `json:"read"`
}

// Side is what a registries.conf is rendered of.
type Side struct {
	// Template is the file that is rendered over.
	Template string `json:"template"`
	// Objects are ImageContentSourcePolicies, ImageDigestMirrorSets and ImageTagMirrorSets.
	Objects []json.RawMessage `json:"objects"`
	// Insecure and Blocked are scopes of the cluster's image configuration.
	Insecure []string `json:"insecure"`
	Blocked  []string `json:"blocked"`
}

// File is a registries.conf, and images that are looked for by it.
type File struct {
	Text string `json:"text"`
	// Names have a tag or a digest.
	Names []string `json:"names"`
}

// Answer says why there is none, or what was asked for.
type Answer struct {
	Error string `json:"error"`
	// Text is what was rendered.
	Text string `json:"text"`
	// Entries are what was read, by their prefixes, and Search the search list.
	Entries []runtime.Registry `json:"entries"`
	Search  []string           `json:"search"`
	// Pulls are in the order of the names.
	Pulls []Pull `json:"pulls"`
}

// Pull is what becomes of an image.
type Pull struct {
	Blocked bool     `json:"blocked"`
	Sources []string `json:"sources"`
}

func main() {
	place, err := os.MkdirTemp("", "mirrors-oracle")
	if err != nil {
		log.Fatal(err)
	}
	err = serve(place)
	os.RemoveAll(place)
	if err != nil {
		log.Fatal(err)
	}
}

func serve(place string) error {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := json.NewEncoder(os.Stdout)
	for number := 0; in.More(); number++ {
		var question Question
		if err := in.Decode(&question); err != nil {
			return fmt.Errorf("question %d: %w", number, err)
		}
		var answer Answer
		var err error
		switch {
		case question.Render != nil:
			answer.Text, err = render(*question.Render)
		case question.Read != nil:
			answer, err = read(place, *question.Read)
		}
		if err != nil {
			answer = Answer{Error: err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

func render(side Side) (string, error) {
	conf := sysregistriesv2.V2RegistriesConf{}
	if _, err := toml.Decode(side.Template, &conf); err != nil {
		return "", err
	}
	all, err := sorted(side.Objects)
	if err != nil {
		return "", err
	}
	if err := all.check(); err != nil {
		return "", err
	}
	for _, scope := range append(append([]string{}, side.Insecure...), side.Blocked...) {
		if !isScope(scope) {
			return "", fmt.Errorf("%q is no scope", scope)
		}
	}
	err = registries.EditRegistriesConfig(&conf, side.Insecure, side.Blocked, all.policies, all.digests, all.tags)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = toml.NewEncoder(&text).Encode(conf)
	return text.String(), err
}

// objects are those of a side, by their kinds.
type objects struct {
	policies []*operator.ImageContentSourcePolicy
	digests  []*config.ImageDigestMirrorSet
	tags     []*config.ImageTagMirrorSet
}

func sorted(texts []json.RawMessage) (objects, error) {
	var all objects
	for _, text := range texts {
		var what struct{ Kind string }
		if err := json.Unmarshal(text, &what); err != nil {
			return all, err
		}
		var err error
		switch what.Kind {
		case "ImageContentSourcePolicy":
			err = add(&all.policies, text)
		case "ImageDigestMirrorSet":
			err = add(&all.digests, text)
		case "ImageTagMirrorSet":
			err = add(&all.tags, text)
		default:
			err = fmt.Errorf("what is %s?", what.Kind)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func add[T any](to *[]*T, text json.RawMessage) error {
	object := new(T)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		return err
	}
	*to = append(*to, object)
	return nil
}

// check refuses what the API server or OpenShift's operator refuses before it renders.
func (all objects) check() error {
	said := map[string]config.MirrorSourcePolicy{}
	check := func(source string, mirrors []string, policy config.MirrorSourcePolicy) error {
		if policy == "" {
			policy = config.AllowContactingSource
		}
		if policy != config.AllowContactingSource && policy != config.NeverContactSource {
			return fmt.Errorf("%q is no policy", policy)
		}
		if before, ok := said[source]; ok && before != policy {
			return fmt.Errorf("%q has two policies", source)
		}
		said[source] = policy
		if !isScope(source) {
			return fmt.Errorf("%q is no source", source)
		}
		for _, mirror := range mirrors {
			if !isScope(mirror) || strings.Contains(mirror, "*") {
				return fmt.Errorf("%q is no mirror", mirror)
			}
			if mirror == source && policy == config.NeverContactSource {
				return fmt.Errorf("%q mirrors itself, and is never contacted", source)
			}
		}
		return nil
	}
	var problems []error
	for _, object := range all.policies {
		for _, set := range object.Spec.RepositoryDigestMirrors {
			problems = append(problems, check(set.Source, set.Mirrors, ""))
		}
	}
	for _, object := range all.digests {
		for _, set := range object.Spec.ImageDigestMirrors {
			problems = append(problems, check(set.Source, words(set.Mirrors), set.MirrorSourcePolicy))
		}
	}
	for _, object := range all.tags {
		for _, set := range object.Spec.ImageTagMirrors {
			problems = append(problems, check(set.Source, words(set.Mirrors), set.MirrorSourcePolicy))
		}
	}
	return errors.Join(problems...)
}

func words(mirrors []config.ImageMirror) []string {
	all := []string{}
	for _, mirror := range mirrors {
		all = append(all, string(mirror))
	}
	return all
}

var (
	host = regexp.MustCompile("^(?:" + reference.DomainRegexp.String() + ")$")
	name = regexp.MustCompile("^(?:" + reference.NameRegexp.String() + ")$")
)

// isScope says whether OpenShift takes it, and the runtime's grammar knows it as a
// host or as a repository with its host.
func isScope(scope string) bool {
	if !registries.IsValidRegistriesConfScope(scope) {
		return false
	}
	if domain, is := strings.CutPrefix(scope, "*."); is {
		return host.MatchString(domain)
	}
	domain, path, has := strings.Cut(scope, "/")
	return host.MatchString(domain) && (!has || name.MatchString("host.example/"+path))
}

func read(place string, file File) (Answer, error) {
	path := filepath.Join(place, "registries.conf")
	if err := os.WriteFile(path, []byte(file.Text), 0o600); err != nil {
		return Answer{}, err
	}
	system := &types.SystemContext{
		SystemRegistriesConfPath:    path,
		SystemRegistriesConfDirPath: filepath.Join(place, "none"),
	}
	runtime.InvalidateCache()
	entries, err := runtime.GetRegistries(system)
	if err != nil {
		return Answer{}, err
	}
	search, err := runtime.UnqualifiedSearchRegistries(system)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Entries: append([]runtime.Registry{}, entries...), Search: search}
	sort.SliceStable(answer.Entries, func(i, j int) bool {
		return answer.Entries[i].Prefix < answer.Entries[j].Prefix
	})
	for _, name := range file.Names {
		pull, err := pull(system, name)
		if err != nil {
			return Answer{}, fmt.Errorf("%s: %w", name, err)
		}
		answer.Pulls = append(answer.Pulls, pull)
	}
	return answer, nil
}

// pull says where an image is looked for, in order.
func pull(system *types.SystemContext, name string) (Pull, error) {
	image, err := reference.ParseNamed(name)
	if err != nil {
		return Pull{}, err
	}
	entry, err := runtime.FindRegistry(system, image.Name())
	if err != nil {
		return Pull{}, err
	}
	if entry == nil {
		return Pull{Sources: []string{name}}, nil
	}
	pull := Pull{Blocked: entry.Blocked}
	places, err := entry.PullSourcesFromReference(image)
	if err != nil {
		// One of them has a name that does not parse: none is asked.
		return pull, nil
	}
	for _, place := range places {
		pull.Sources = append(pull.Sources, fmt.Sprintf("%s insecure=%t", place.Reference, place.Endpoint.Insecure))
	}
	return pull, nil
}
