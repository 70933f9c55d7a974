package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A test that has ended leaves objects behind. `mark` remembers what etcd holds before a test, and
// `restore` puts that back behind the API server's back, which sees it by its watches: the next
// test starts where the first one did, without a start of the API server.

// What the API server writes by itself, whatever a test does. It stays as it is.
var ownWrites = []string{
	"/registry/configmaps/kube-system/extension-apiserver-authentication",
	"/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
	"/registry/leases/kube-system/apiserver-",
	"/registry/masterleases/",
	"/registry/ranges/",
}

// What the API server makes at its start, with states that it writes by itself.
var flows = []string{
	"/registry/flowschemas/",
	"/registry/prioritylevelconfigurations/",
}

// What decides how the API server answers. It takes note of a change a moment later than the next
// test might ask it, so that nothing here may have changed, but for what is harmless until then. Of
// flow schemas and priority levels only those that come and go are seen.
var itsRules = []string{
	"/registry/apiextensions.k8s.io/",
	"/registry/apiregistration.k8s.io/",
	"/registry/clusterrolebindings/",
	"/registry/clusterroles/",
	"/registry/flowschemas/",
	"/registry/limitranges/",
	"/registry/mutatingadmissionpolicies/",
	"/registry/mutatingadmissionpolicybindings/",
	"/registry/mutatingwebhookconfigurations/",
	"/registry/priorityclasses/",
	"/registry/prioritylevelconfigurations/",
	"/registry/resourcequotas/",
	"/registry/rolebindings/",
	"/registry/roles/",
	"/registry/validatingadmissionpolicies/",
	"/registry/validatingadmissionpolicybindings/",
	"/registry/validatingwebhookconfigurations/",
}

// For a moment the API server may still go by what these were, which does no harm.
var harmless = []string{
	// The controller manager puts these together of others.
	"/registry/clusterroles/admin",
	"/registry/clusterroles/edit",
	"/registry/clusterroles/view",
	// It asks a service of the last test, which has ended: in vain, and nobody waits for that.
	"/registry/validatingwebhookconfigurations/",
}

// What etcd held under a key, and since which revision.
type held struct {
	value    string
	revision int64
}

func (s *supervisor) mark(ctx context.Context) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := s.etcd(ctx)
	if err != nil {
		return failed(err)
	}
	defer client.Close()
	got, err := client.Get(ctx, "/registry/", clientv3.WithPrefix())
	if err != nil {
		return failed(err)
	}
	s.marked = make(map[string]held, len(got.Kvs))
	for _, one := range got.Kvs {
		s.marked[string(one.Key)] = held{value: string(one.Value), revision: one.ModRevision}
	}
	return reply{}
}

// Ends all but etcd and the API server, waits until nobody is connected to that one any more, and
// puts back what was marked. It fails where somebody stays, or where that would not be enough.
func (s *supervisor) restore(ctx context.Context, r request, server *process) reply {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Seconds)*time.Second)
	defer cancel()
	if server == nil {
		return failed(errors.New("kube-apiserver was never started"))
	}
	if err := s.awaitQuiet(ctx, r.Port, server); err != nil {
		return failed(err)
	}
	if err := s.putBack(ctx); err != nil {
		return failed(err)
	}
	// Whoever came meanwhile may have written.
	return failed(s.awaitQuiet(ctx, r.Port, server))
}

// In the goroutine that starts processes.
func (s *supervisor) endOthers() {
	for name, p := range s.processes {
		if name != "etcd" && name != "kube-apiserver" {
			p.kill()
			<-p.ended
			delete(s.processes, name)
		}
	}
}

func (s *supervisor) awaitQuiet(ctx context.Context, port int, server *process) error {
	for {
		// What is asked by this process itself.
		s.client.CloseIdleConnections()
		clients, err := clientsOf(port, server.command.Process.Pid)
		if err != nil {
			return err
		}
		if clients == 0 {
			return nil
		}
		select {
		case <-server.ended:
			return fmt.Errorf("kube-apiserver has ended: %s", server.how)
		case <-ctx.Done():
			return fmt.Errorf("%d clients are still connected", clients)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *supervisor) putBack(ctx context.Context) error {
	client, err := s.etcd(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	got, err := client.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	var changes []clientv3.Op
	var rewritten []string
	found := make(map[string]bool, len(got.Kvs))
	for _, one := range got.Kvs {
		key := string(one.Key)
		found[key] = true
		marked, known := s.marked[key]
		switch {
		case hasPrefix(key, ownWrites) || known && marked.revision == one.ModRevision:
		case hasPrefix(key, flows) && known:
		case hasPrefix(key, itsRules) && !hasPrefix(key, harmless):
			return fmt.Errorf("%s has changed", key)
		case known:
			changes = append(changes, clientv3.OpPut(key, marked.value))
			rewritten = append(rewritten, key)
		default:
			changes = append(changes, clientv3.OpDelete(key))
		}
	}
	for key, marked := range s.marked {
		switch {
		case found[key] || hasPrefix(key, ownWrites):
		case hasPrefix(key, itsRules) && !hasPrefix(key, harmless):
			return fmt.Errorf("%s was removed", key)
		default:
			changes = append(changes, clientv3.OpPut(key, marked.value))
			rewritten = append(rewritten, key)
		}
	}
	if err := commit(ctx, client, changes); err != nil {
		return err
	}
	for _, key := range rewritten {
		now, err := client.Get(ctx, key, clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		for _, one := range now.Kvs {
			s.marked[key] = held{value: s.marked[key].value, revision: one.ModRevision}
		}
	}
	return nil
}

func hasPrefix(key string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// The states of a connection on which a server may still be asked something.
const (
	established = 1
	half        = 3
	closeWait   = 8
)

// The connections to the API server on this port that it has not made itself.
func clientsOf(port int, pid int) (int, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	own, err := socketsOf(proc, pid)
	if err != nil {
		return 0, err
	}
	connections, err := proc.NetTCP()
	if err != nil {
		return 0, err
	}
	itself := map[uint64]bool{}
	for _, one := range connections {
		if one.RemPort == uint64(port) && own[fmt.Sprintf("socket:[%d]", one.Inode)] {
			itself[one.LocalPort] = true
		}
	}
	clients := 0
	for _, one := range connections {
		open := one.St == established || one.St == half || one.St == closeWait
		if one.LocalPort == uint64(port) && open && !itself[one.RemPort] {
			clients++
		}
	}
	return clients, nil
}

// As `socket:[INODE]`.
func socketsOf(proc procfs.FS, pid int) (map[string]bool, error) {
	process, err := proc.Proc(pid)
	if err != nil {
		return nil, err
	}
	targets, err := process.FileDescriptorTargets()
	if err != nil {
		return nil, err
	}
	sockets := make(map[string]bool, len(targets))
	for _, target := range targets {
		sockets[target] = true
	}
	return sockets, nil
}
