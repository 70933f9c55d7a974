package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What the first API server wrote into an empty store is kept beside this binary, and put into the
// stores that are started afterwards. An API server looks at all of it whenever it starts, and makes
// what is missing: it has less to make then. These are Kubernetes' own roles, flows, priorities and
// API groups. What is of one cluster alone, as the namespaces with their UIDs, is not kept.
var first = []string{
	"/registry/apiregistration.k8s.io/apiservices/",
	"/registry/clusterrolebindings/",
	"/registry/clusterroles/",
	"/registry/flowschemas/",
	"/registry/priorityclasses/",
	"/registry/prioritylevelconfigurations/",
	"/registry/rolebindings/",
	"/registry/roles/",
}

// How many etcd takes at once, with some to spare.
const atOnce = 100

type pair struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

func (s *supervisor) firstFile() string {
	return filepath.Join(s.binaries, "first.json")
}

// Puts into an empty store what was kept, if anything was, once the store answers.
func (s *supervisor) fillFirst(ctx context.Context, store *process) reply {
	path := s.firstFile()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return reply{}
	}
	var pairs []pair
	if err == nil {
		err = json.Unmarshal(text, &pairs)
	}
	if err != nil {
		return failed(fmt.Errorf("%s, which can be removed: %w", path, err))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := s.awaitStore(ctx, store); err != nil {
		return reply{Error: err.Error(), Name: "etcd"}
	}
	client, err := s.etcd(ctx)
	if err != nil {
		return failed(err)
	}
	defer client.Close()
	var puts []clientv3.Op
	for _, one := range pairs {
		puts = append(puts, clientv3.OpPut(string(one.Key), string(one.Value)))
	}
	return failed(commit(ctx, client, puts))
}

// As many at once as etcd takes.
func commit(ctx context.Context, client *clientv3.Client, changes []clientv3.Op) error {
	for len(changes) > 0 {
		some := changes[:min(atOnce, len(changes))]
		if _, err := client.Txn(ctx).Then(some...).Commit(); err != nil {
			return err
		}
		changes = changes[len(some):]
	}
	return nil
}

// Until somebody listens; a client that asked before would wait for a second.
func (s *supervisor) awaitStore(ctx context.Context, store *process) error {
	for {
		connection, err := net.Dial("unix", clientURL(filepath.Join(s.dir, "etcd")).Path)
		if err == nil {
			return connection.Close()
		}
		if store == nil {
			return errors.New("etcd was never started")
		}
		select {
		case <-store.ended:
			return fmt.Errorf("etcd has ended: %s", store.how)
		case <-ctx.Done():
			return fmt.Errorf("etcd does not listen: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Keeps what an API server has written, unless that was kept before.
func (s *supervisor) keepFirst(ctx context.Context) reply {
	path := s.firstFile()
	if exists(path) {
		return reply{}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := s.etcd(ctx)
	if err != nil {
		return failed(err)
	}
	defer client.Close()
	var pairs []pair
	for _, prefix := range first {
		got, err := client.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return failed(err)
		}
		for _, one := range got.Kvs {
			pairs = append(pairs, pair{Key: one.Key, Value: one.Value})
		}
	}
	text, err := json.Marshal(pairs)
	if err != nil {
		return failed(err)
	}
	// Others may keep the same meanwhile. Where nothing can be written each starts with nothing.
	part := fmt.Sprintf("%s.%d.part", path, os.Getpid())
	if os.WriteFile(part, text, 0o600) != nil || os.Rename(part, path) != nil {
		_ = os.Remove(part)
	}
	return reply{}
}

// Raises the alarm of an etcd whose space is used up, or lowers it.
func (s *supervisor) space(ctx context.Context, action etcdserverpb.AlarmRequest_AlarmAction) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := s.etcd(ctx)
	if err != nil {
		return reply{Error: err.Error()}
	}
	defer client.Close()
	alarm := &etcdserverpb.AlarmRequest{Action: action, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, alarm); err != nil {
		return reply{Error: err.Error()}
	}
	return reply{}
}

func (s *supervisor) etcd(ctx context.Context) (*clientv3.Client, error) {
	endpoint := clientURL(filepath.Join(s.dir, "etcd")).String()
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Context: ctx})
}

// Makes etcd forget all that is not current.
func (s *supervisor) compact(ctx context.Context) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := s.etcd(ctx)
	if err != nil {
		return reply{Error: err.Error()}
	}
	defer client.Close()
	got, err := client.Get(ctx, "/", clientv3.WithLimit(1), clientv3.WithCountOnly())
	if err != nil {
		return reply{Error: err.Error()}
	}
	if _, err := client.Compact(ctx, got.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return reply{Error: err.Error()}
	}
	return reply{Revision: got.Header.Revision}
}

// What was written to one key, as JSON: before it was deleted, if it was.
type write struct {
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Revision int64           `json:"revision"`
	Deleted  bool            `json:"deleted,omitempty"`
}

// All that was written below a prefix, from a revision on.
func (s *supervisor) history(ctx context.Context, r request) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := s.etcd(ctx)
	if err != nil {
		return failed(err)
	}
	defer client.Close()
	got, err := client.Get(ctx, "/", clientv3.WithLimit(1), clientv3.WithCountOnly())
	if err != nil {
		return failed(err)
	}
	last := got.Header.Revision
	if r.Revision > last {
		return reply{Revision: last}
	}
	writes := []write{}
	// Of all keys, so that something comes of the last revision, whatever it wrote.
	told := client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(r.Revision), clientv3.WithPrevKV())
	for came := range told {
		if err := came.Err(); err != nil {
			return failed(err)
		}
		for _, event := range came.Events {
			if event.Kv.ModRevision <= last && strings.HasPrefix(string(event.Kv.Key), r.Name) {
				one, err := writeOf(event)
				if err != nil {
					return failed(err)
				}
				writes = append(writes, one)
			}
		}
		// All of one revision comes together.
		if count := len(came.Events); count > 0 && came.Events[count-1].Kv.ModRevision >= last {
			return reply{Writes: writes, Revision: last}
		}
	}
	return failed(fmt.Errorf("etcd tells no more of what was written: %w", ctx.Err()))
}

func writeOf(event *clientv3.Event) (write, error) {
	one := write{Key: string(event.Kv.Key), Value: event.Kv.Value, Revision: event.Kv.ModRevision}
	if event.Type == clientv3.EventTypeDelete {
		if event.PrevKv == nil {
			return one, fmt.Errorf("what %s was before revision %d is forgotten", one.Key, one.Revision)
		}
		one.Value, one.Deleted = event.PrevKv.Value, true
	}
	if !json.Valid(one.Value) {
		return one, fmt.Errorf("%s is not stored as JSON: start the control plane with_readable_store", one.Key)
	}
	return one, nil
}

func clientURL(dir string) *url.URL {
	return &url.URL{Scheme: "unix", Path: filepath.Join(dir, "client.sock")}
}

func urls(one *url.URL) []url.URL {
	return []url.URL{*one}
}
