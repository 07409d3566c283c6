package mpi;

/** The neighbours of a rank in a distributed graph. */
public final class DistGraphNeighbors {
    private final int[] sources;
    private final int[] sourceWeights;
    private final int[] destinations;
    private final int[] destWeights;
    private final boolean weighted;

    DistGraphNeighbors(int[] sources, int[] sourceWeights, int[] destinations, int[] destWeights, boolean weighted) {
        this.sources = sources;
        this.sourceWeights = sourceWeights;
        this.destinations = destinations;
        this.destWeights = destWeights;
        this.weighted = weighted;
    }

    /** Rank of a neighbour that sends to this one. */
    public int getSource(int i) {
        return sources[i];
    }

    /** Weight of the edge from a neighbour. */
    public int getSourceWeight(int i) {
        return sourceWeights[i];
    }

    /** Rank of a neighbour that receives from this one. */
    public int getDestination(int i) {
        return destinations[i];
    }

    /** Weight of the edge to a neighbour. */
    public int getDestinationWeight(int i) {
        return destWeights[i];
    }

    /** Number of edges into this rank. */
    public int getInDegree() {
        return sources.length;
    }

    /** Number of edges out of this rank. */
    public int getOutDegree() {
        return destinations.length;
    }

    /** Whether edges have weights. */
    public boolean isWeighted() {
        return weighted;
    }
}
